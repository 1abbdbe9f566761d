package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/apply"
)

// take says whether calls count against what somebody else applied.
func (c *Call) take() bool {
	ceph := c.View.Cluster.Spec.Ceph
	return ceph != nil && ceph.Orch != nil && ceph.Orch.Conflicts == api.CephOrchTake
}

// live is an object as it is, nil where there is none.
func live(ctx context.Context, c client.Client, of *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(of), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", apply.NameOf(of), err)
	}
	return u, nil
}

// object is an empty object of a kind of Holdfast.
func object(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
