package join

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
)

// Hosts keeps the names of hosts and the keys that they belong to: in the Hosts themselves.
type Hosts struct{ client client.Client }

// NewHosts returns Hosts that works with the rights of config. No request is sent yet.
func NewHosts(config *rest.Config) (*Hosts, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Hosts{c}, nil
}

// Register makes the Host, if there is none, for the holder of a key. It refuses a name that belongs to another key.
func (h *Hosts) Register(ctx context.Context, name, keyID string) error {
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{api.LabelHostname: name},
		Annotations: map[string]string{access.HostKey: keyID},
	}}
	err := h.client.Create(ctx, host)
	if apierrors.IsAlreadyExists(err) {
		return h.free(ctx, name, keyID)
	}
	if err != nil {
		return fmt.Errorf("while creating the Host %s: %w", name, err)
	}
	return nil
}

// has says whether the Host is there.
func (h *Hosts) has(ctx context.Context, name string) (bool, error) {
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, &api.Host{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("while reading the Host %s: %w", name, err)
	}
	return err == nil, nil
}

// Claim makes the Host, or gives the one that there is to the holder of a key: a server that was restored on another machine
// takes the place of the one that was lost.
func (h *Hosts) Claim(ctx context.Context, name, keyID string) error {
	host := &api.Host{}
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, host)
	if apierrors.IsNotFound(err) {
		return h.Register(ctx, name, keyID)
	}
	if err != nil || host.Annotations[access.HostKey] == keyID {
		return err
	}
	before := host.DeepCopy()
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, access.HostKey, keyID)
	if err := h.client.Patch(ctx, host, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("while taking over the Host %s: %w", name, err)
	}
	return nil
}

// MarkServer labels a Host as one that runs a server. A Host that is gone is no error.
func (h *Hosts) MarkServer(ctx context.Context, name string) error {
	host := &api.Host{}
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, host)
	if err != nil || host.Labels[api.LabelServer] != "" {
		return client.IgnoreNotFound(err)
	}
	before := host.DeepCopy()
	metav1.SetMetaDataLabel(&host.ObjectMeta, api.LabelServer, "true")
	if err := h.client.Patch(ctx, host, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while labelling the Host %s as a server: %w", name, err)
	}
	return nil
}

// free refuses a name that belongs to another key.
func (h *Hosts) free(ctx context.Context, name, keyID string) error {
	host := &api.Host{}
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, host)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading the Host %s: %w", name, err)
	}
	if host.Annotations[access.HostKey] == keyID {
		return nil
	}
	return refused("a host named %s joined before, from another machine or data directory: choose another name with --name, "+
		"or, if that machine is gone for good, take it out with 'holdfast host remove %s --gone'", name, name)
}

// Annotate notes something on a Host. It writes nothing where it is noted already.
func (h *Hosts) Annotate(ctx context.Context, name, key, value string) error {
	host := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	host.SetGroupVersionKind(api.GroupVersion.WithKind("Host"))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	return h.client.Patch(ctx, host, client.RawPatch(types.MergePatchType, patch))
}
