package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ErrNotFound is wrapped by a Store's errors for things that are not there.
var ErrNotFound = errors.New("not found")

// ErrLocked is returned by Store.Lock while another run holds the cluster's lock.
var ErrLocked = errors.New("locked by another run")

// Store is where the engine reads its view from and writes its plan to: the API in both homes, memory in the simulator.
// Every implementation passes the suite of package engine/storetest. It is safe for concurrent use.
type Store interface {
	// Clusters lists all clusters.
	Clusters(ctx context.Context) ([]api.StorageCluster, error)
	// View reads everything of one cluster but View.System. The error wraps ErrNotFound when the cluster is gone.
	View(ctx context.Context, cluster types.NamespacedName) (*View, error)
	// Lock takes the cluster's lock for this leader, and returns a context that ends when the lock is lost. It returns an
	// error that wraps ErrLocked, and says who holds it, when it cannot be had. A lock already held by the same leader is
	// had at no cost: no write is done.
	Lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error)
	// MakeSecret creates the Secret if there is none of this name; data is called only then.
	MakeSecret(ctx context.Context, cluster *api.StorageCluster, want SecretWant, data func() (map[string][]byte, error)) error
	// Secrets reads the Secrets of a cluster.
	Secrets(cluster types.NamespacedName) SecretReader
	// PutDaemon creates the daemon or updates its spec.
	PutDaemon(ctx context.Context, cluster *api.StorageCluster, change DaemonChange) error
	// RemoveDaemon deletes a daemon; its agent cleans up before it is gone. A daemon that is gone is no error.
	RemoveDaemon(ctx context.Context, namespace, name string) error
	// PutNodeStatus writes a StorageNode's status.
	PutNodeStatus(ctx context.Context, namespace string, status NodeStatus) error
	// PutStatus creates the cluster's StorageStatus or writes its status, if it differs.
	PutStatus(ctx context.Context, cluster *api.StorageCluster, status api.StorageStatusStatus) error
	// PutClusterStatus writes the StorageCluster's own status, if it differs.
	PutClusterStatus(ctx context.Context, cluster types.NamespacedName, change func(*api.StorageClusterStatus)) error
	// Emit appends events to the cluster's log, numbering them without a gap, and trims the log to its bounds.
	Emit(ctx context.Context, cluster *api.StorageCluster, events []Event) error
	// Finish lets a deleted cluster go: its Secrets, events and StorageStatus are removed, then its finalizer.
	Finish(ctx context.Context, cluster *api.StorageCluster) error
	// Adopt puts the engine's finalizer on a cluster, before anything is made for it.
	Adopt(ctx context.Context, cluster types.NamespacedName) error
}
