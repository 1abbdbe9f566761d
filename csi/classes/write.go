package classes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// writer carries out Plans.
type writer struct {
	api client.Client
	// seen are the versions of the Clients and Secrets that were found to agree.
	seen map[types.NamespacedName]versions
}

// versions are those of a Client and its Secret for the driver.
type versions struct{ client, secret string }

func newWriter(c client.Client) *writer {
	return &writer{api: c, seen: map[types.NamespacedName]versions{}}
}

func (w *writer) readClaims(ctx context.Context, world *World) error {
	var claims corev1.PersistentVolumeClaimList
	if err := w.api.List(ctx, &claims); err != nil {
		return fmt.Errorf("while reading claims: %w", err)
	}
	world.Claims, world.ClaimsKnown = claims.Items, true
	return nil
}

// write carries out a Plan. It returns all errors, and does the rest.
func (w *writer) write(ctx context.Context, p Plan) error {
	var errs []error
	for _, o := range p.Make {
		errs = append(errs, doing("making", o, w.create(ctx, o)))
	}
	for _, o := range p.Change {
		err := w.api.Update(ctx, o)
		if apierrors.IsConflict(err) {
			err = nil // another version of it is about to come by the watch, and is looked at then
		}
		errs = append(errs, doing("changing", o, err))
	}
	for _, c := range p.Keys {
		errs = append(errs, doing("writing the Secret for", c, w.key(ctx, c)))
	}
	for _, m := range p.Marks {
		errs = append(errs, doing("labelling", m.Object, w.mark(ctx, m)))
	}
	for _, o := range p.Remove {
		err := w.api.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())})
		errs = append(errs, doing("removing", o, client.IgnoreNotFound(err)))
	}
	return errors.Join(errs...)
}

func doing(what string, o client.Object, err error) error {
	if err == nil {
		return nil
	}
	name := strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")
	return fmt.Errorf("while %s %T %s: %w", what, o, name, err)
}

// create makes an object. One that was just made, and the watch has not brought yet, is as it should be.
func (w *writer) create(ctx context.Context, o client.Object) error {
	err := w.api.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := o.DeepCopyObject().(client.Object)
	if gone := w.api.Get(ctx, client.ObjectKeyFromObject(o), there); gone != nil {
		return errors.Join(err, gone)
	}
	if isOurs(there) {
		return nil
	}
	return fmt.Errorf("%w, and Holdfast did not make it: delete it, and Holdfast makes one", err)
}

// key brings the Secret of a Client to what the driver needs: the key, and where the cluster is.
func (w *writer) key(ctx context.Context, c *api.Client) error {
	at := client.ObjectKeyFromObject(c)
	have, from := &corev1.Secret{}, &corev1.Secret{}
	err := w.api.Get(ctx, at, have)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	agree := versions{c.ResourceVersion, have.ResourceVersion}
	if err == nil && w.seen[at] == agree {
		return nil
	}
	if err == nil && !isOurs(have) {
		return errors.New("a Secret of its name exists that Holdfast did not make: delete it, and Holdfast makes one")
	}
	if gone := w.api.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Status.Secret}, from); gone != nil {
		return gone
	}
	if len(from.Data[keyOfClient]) == 0 {
		return fmt.Errorf("the Secret %s of the Client has no key", c.Status.Secret)
	}
	want := valuesOf(c, from)
	switch {
	case apierrors.IsNotFound(err):
		return w.create(ctx, &corev1.Secret{ObjectMeta: metaOf(c), Type: corev1.SecretTypeOpaque, Data: want})
	case !maps.EqualFunc(have.Data, want, func(a, b []byte) bool { return string(a) == string(b) }):
		have.Data = want
		return w.api.Update(ctx, have)
	}
	w.seen[at] = agree
	return nil
}

// keyOfClient is the entry of a Client's own Secret that has its key.
const keyOfClient = "key"

// metaOf begins the Secret of a Client.
func metaOf(c *api.Client) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name, Labels: maps.Clone(c.Labels),
		Annotations: map[string]string{AnnotationOf: c.Annotations[AnnotationOf]},
	}
}

// valuesOf are what the Secret of a Client holds.
func valuesOf(c *api.Client, from *corev1.Secret) map[string][]byte {
	return map[string][]byte{
		backend.SecretCluster: []byte(c.Status.FSID), backend.SecretMons: []byte(c.Status.MonHost),
		backend.SecretUser: []byte(strings.TrimPrefix(c.Status.Entity, "client.")),
		backend.SecretKey:  from.Data[keyOfClient],
	}
}

// mark writes LabelVolumes alone: the rest of the object is others'.
func (w *writer) mark(ctx context.Context, m Mark) error {
	value := "null"
	if m.InUse {
		value = `""`
	}
	text := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, LabelVolumes, value)
	o := m.Object.DeepCopyObject().(client.Object)
	return client.IgnoreNotFound(w.api.Patch(ctx, o, client.RawPatch(types.MergePatchType, text)))
}
