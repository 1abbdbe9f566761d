package store

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// ReadObjects reads everything that views are made of, with a client or a cache.
func ReadObjects(ctx context.Context, r client.Reader) (*engine.Objects, error) {
	o := &engine.Objects{}
	if err := readFew(ctx, r, o); err != nil {
		return nil, err
	}
	var daemons api.DaemonList
	if err := r.List(ctx, &daemons); err != nil {
		return nil, fmt.Errorf("while reading %T: %w", daemons, err)
	}
	o.Daemons = daemons.Items
	return o, readSecrets(ctx, r, o)
}

// readFew reads the kinds of which there are few.
func readFew(ctx context.Context, r client.Reader, o *engine.Objects) error {
	var clusters api.StorageClusterList
	var nodes api.StorageNodeList
	var hosts api.HostList
	var statuses api.StorageStatusList
	var actions api.ActionList
	for _, list := range []client.ObjectList{&clusters, &nodes, &hosts, &statuses, &actions} {
		if err := r.List(ctx, list); err != nil {
			return fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	o.Clusters, o.Nodes, o.Hosts, o.Statuses, o.Actions = clusters.Items, nodes.Items, hosts.Items, statuses.Items, actions.Items
	var err error
	o.Resources, err = ReadResources(ctx, r)
	return err
}

func readSecrets(ctx context.Context, r client.Reader, o *engine.Objects) error {
	var secrets corev1.SecretList
	if err := r.List(ctx, &secrets, client.HasLabels{api.LabelCluster}); err != nil {
		return fmt.Errorf("while reading %T: %w", secrets, err)
	}
	for i := range secrets.Items {
		o.Secrets = append(o.Secrets, secretOf(&secrets.Items[i]))
	}
	return nil
}

func secretOf(s *corev1.Secret) engine.ObjectsSecret {
	return engine.ObjectsSecret{
		Namespace: s.Namespace, Cluster: clusterOfSecret(s).Name,
		SecretInfo: engine.SecretInfo{
			Name: s.Name, UID: string(s.UID), Keys: sortedKeys(s.Data),
			Annotations: s.Annotations,
		},
	}
}

// sortedKeys is made for each Secret of a cluster in each run, and nearly all have one key.
func sortedKeys(data map[string][]byte) []string {
	keys := make([]string, 0, len(data))
	for k := range data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Secrets reads the Secrets of one namespace.
type Secrets struct {
	Reader    client.Reader
	Namespace string
}

var _ engine.SecretReader = (*Secrets)(nil)

// Secret returns what the named Secret holds, or an error that wraps engine.ErrNotFound.
func (s *Secrets) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s: %w", name, engine.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading secret %s: %w", name, err)
	}
	return secret.Data, nil
}
