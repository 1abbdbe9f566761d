package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ServiceManager owns one distributed service (etcd, ceph, glusterfs, torus). It acts on the leader only.
type ServiceManager interface {
	// Name is the service.
	Name() string
	// RefreshKeys says what, when changed, triggers an orchestration.
	RefreshKeys() []RefreshKey
	// HandleRefresh brings the service towards its desired state. It is called again after an error, with back-off. An
	// error that wraps ErrNotFound says that the cluster is gone, one that wraps ErrLocked that another run holds it.
	// It is never called for one cluster by two goroutines at once.
	HandleRefresh(ctx context.Context, e *RefreshEvent) error
}

// RefreshKey names a kind whose changes matter to a service.
type RefreshKey struct {
	Kind string
}

// RefreshEvent says which cluster to orchestrate, and what triggered it. HandleRefresh fills in the rest.
type RefreshEvent struct {
	Cluster types.NamespacedName
	Reason  string
	// Request is the value of the cluster's annotation AnnotationOrchestrate when the run began.
	Request string

	// Changed is set when something was changed: the next run comes at once, to see what became of it.
	Changed bool
	// Recheck asks for another run after this time. Zero: the cluster's interval.
	Recheck time.Duration
	// Outcome is that of the report, for statistics, and Events how many events were written.
	Outcome string
	Events  int
	// Failure is why commands of the run failed whose failure did not end it.
	Failure error
}
