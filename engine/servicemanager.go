package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// ServiceManager owns one distributed service (etcd, ceph, glusterfs, torus). It acts on the leader only.
type ServiceManager interface {
	// Name is the service.
	Name() string
	// RefreshKeys says what, when changed, triggers an orchestration.
	RefreshKeys() []RefreshKey
	// HandleRefresh brings the service towards its desired state. It is called again after an error, with back-off.
	HandleRefresh(ctx context.Context, e *RefreshEvent) error
}

// RefreshKey names a kind whose changes matter to a service.
type RefreshKey struct {
	Kind string
}

// RefreshEvent says which cluster to orchestrate, and what triggered it.
type RefreshEvent struct {
	Cluster types.NamespacedName
	Reason  string
}
