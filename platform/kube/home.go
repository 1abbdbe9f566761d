package kube

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// IsHome says whether the API is that of a Kubernetes cluster which Holdfast runs in: it has the
// kind Term, which Holdfast's own servers do not have.
func IsHome(ctx context.Context, c client.Reader) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: api.TermName}, &api.Term{})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return true, nil
	case meta.IsNoMatchError(err):
		return false, nil
	}
	return false, err
}

// LeaderLease reads the Lease that the operator which leads renews.
func LeaderLease(ctx context.Context, c client.Reader) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, c.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: api.LeaderLease}, lease)
}
