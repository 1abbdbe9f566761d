package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

// ErrNotFound is wrapped by a Store's errors for things that are not there.
var ErrNotFound = errors.New("not found")

// ErrLocked is returned by Store.Lock while another run holds the cluster's lock.
var ErrLocked = errors.New("locked by another run")

// ErrStale is wrapped by the error of a write that was decided from what is not so any more.
var ErrStale = errors.New("changed since it was read")

// Store is where the engine reads its view from and writes its plan to: the API in both homes,
// memory in the simulator. Every implementation passes the suite of package engine/storetest. It is
// safe for concurrent use. A consumer that needs a part of it asks for the roles below, or for
// single methods.
type Store interface {
	ClusterReader
	Adopter
	SecretStore
	DaemonStore
	NodeStore
	ResourceStore
	StatusStore
	EventLog
	HostStore
	// Lock takes the cluster's lock for this leader, and returns a context that ends when the lock
	// is lost. It returns an error that wraps ErrLocked, and says who holds it, when it cannot be
	// had. A lock already held by the same leader is had at no cost: no write is done.
	Lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error)
	// Notify calls f with each change that concerns a cluster, until ctx ends; what was changed
	// before is not told. It returns at once. f must not block. What the engine itself writes into
	// a status is not told.
	Notify(ctx context.Context, f func(Change))
}

// ClusterReader reads clusters.
type ClusterReader interface {
	// Clusters lists all clusters.
	Clusters(ctx context.Context) ([]api.StorageCluster, error)
	// Cluster reads one cluster. The error wraps ErrNotFound when it is gone.
	Cluster(ctx context.Context, cluster types.NamespacedName) (*api.StorageCluster, error)
	// View reads everything of one cluster but View.System. The error wraps ErrNotFound when the
	// cluster is gone. A View is never older than the writes that this Store has done.
	View(ctx context.Context, cluster types.NamespacedName) (*View, error)
}

// Adopter takes a cluster into the engine's care, and lets it go.
type Adopter interface {
	// Adopt puts the engine's finalizer on a cluster, before anything is made for it.
	Adopt(ctx context.Context, cluster types.NamespacedName) error
	// Finish lets a deleted cluster go: its resources are let go (OrphanResource,
	// ReleaseResource), its events and its StorageStatus are removed, and under DeletionWipe its
	// Secrets, then its finalizer. Under DeletionRetain the Secrets stay, with their labels:
	// without them the data cannot be read.
	Finish(ctx context.Context, cluster *api.StorageCluster) error
}

// SecretStore keeps the Secrets of clusters.
type SecretStore interface {
	// Secrets reads the Secrets of a cluster.
	Secrets(cluster types.NamespacedName) SecretReader
	// MakeSecret creates the Secret if there is none of this name; data is called only then.
	MakeSecret(ctx context.Context, cluster *api.StorageCluster, want SecretWant, data func() (map[string][]byte, error)) error
	// RemoveSecret deletes a Secret of the cluster. One that is gone, or not the cluster's, is
	// left alone.
	RemoveSecret(ctx context.Context, cluster types.NamespacedName, name string) error
}

// DaemonStore writes the Daemons of clusters, and asks their agents.
type DaemonStore interface {
	// PutDaemon creates the daemon, if change.New, or updates its spec and the leader's memory of
	// it (package leadermemory), in one write. A change of the memory alone changes no generation.
	// Nothing is written when it has both already. When one that is not new is not there any more
	// nothing is written, and the error wraps ErrStale: who removed it meant it.
	PutDaemon(ctx context.Context, cluster *api.StorageCluster, change DaemonChange) error
	// AnnotateDaemon writes a daemon's annotations, if change makes them differ: what a person
	// asks of it, and no memory. The error wraps ErrNotFound when the daemon is gone.
	AnnotateDaemon(ctx context.Context, daemon types.NamespacedName, change func(annotations map[string]string)) error
	// PutService writes what the storage system says of a daemon, if it differs. A daemon that is
	// gone is no error.
	PutService(ctx context.Context, namespace string, change serving.Change) error
	// RemoveDaemon deletes a daemon; its agent cleans up before it is gone. A daemon that is gone
	// is no error.
	RemoveDaemon(ctx context.Context, namespace, name string) error
	// ReleaseDaemon takes the agent's finalizer from a daemon that is being deleted: its host is
	// gone for good, and nobody will clean up there. A daemon that is gone, or is not being
	// deleted, is left alone.
	ReleaseDaemon(ctx context.Context, daemon types.NamespacedName) error
	// Ask has the agent of a daemon carry out a command, and waits until it has. It returns what
	// the agent says of it; the error has the words of the agent, or says why it did not carry it
	// out. A command that is under way already, because a leader died that had asked for it, is
	// waited for, and not asked for twice; one that ended before is asked for anew. When ctx ends
	// first, or the agent falls silent, a command that has not been begun is withdrawn. A View
	// that is made afterwards has what the agent reported of the daemon after the command.
	Ask(ctx context.Context, daemon *api.Daemon, cmd Command) (message string, err error)
}

// NodeStore writes StorageNodes.
type NodeStore interface {
	// PutNode writes a StorageNode's spec, if change makes it differ. The error wraps ErrNotFound
	// when it is gone.
	PutNode(ctx context.Context, node types.NamespacedName, change func(*api.StorageNodeSpec)) error
	// PutNodeStatus writes a StorageNode's status, if it differs. A node that is gone is no error.
	// Of one that is not as status.Seen any more nothing is written, and the error wraps ErrStale.
	PutNodeStatus(ctx context.Context, namespace string, status NodeStatus) error
	// RemoveNode deletes a StorageNode. One that is gone is no error.
	RemoveNode(ctx context.Context, node types.NamespacedName) error
}

// ResourceStore reads and writes resources, such as pools.
type ResourceStore interface {
	// Resources lists all resources of all kinds, sorted (SortResources).
	Resources(ctx context.Context) ([]api.Resource, error)
	// PutResource adopts a resource (AdoptResource), unless it is change.Unadopted, and then
	// writes its status, if it differs. Of one that is not there, or not as change.Seen any more,
	// nothing is written, and the error wraps ErrStale. One that is change.Gone is let go instead
	// (ReleaseResource), if it is being deleted and is still the one that was seen; if it is gone
	// already that is no error.
	PutResource(ctx context.Context, change ResourceChange) error
}

// StatusStore writes what a StorageCluster and its StorageStatus say.
type StatusStore interface {
	// PutStatus creates the cluster's StorageStatus or writes its status, if it differs.
	PutStatus(ctx context.Context, cluster *api.StorageCluster, status api.StorageStatusStatus) error
	// PutClusterStatus writes the StorageCluster's own status, if it differs.
	PutClusterStatus(ctx context.Context, cluster types.NamespacedName, change func(*api.StorageClusterStatus)) error
}

// EventLog is the log of the events of clusters.
type EventLog interface {
	// Told reads what was recorded by Emit, whoever led, after all events that go with it have
	// been written. It is empty, not nil, where nothing was recorded. The caller may change it.
	Told(ctx context.Context, cluster types.NamespacedName) (Told, error)
	// Emit appends events to the cluster's log, numbering them without a gap, trims the log to its
	// bounds, and records what the events tell: told holds the entries that changed, with nil for
	// those that are gone. The events and the record are accepted at once or not at all: a leader
	// that dies leaves it to the next one, in Told, to write what was accepted. It returns how
	// many events were accepted, all or none; after an error the caller calls again with those
	// that were not.
	Emit(ctx context.Context, cluster *api.StorageCluster, events []Event, told map[string]*string) (int, error)
}

// HostStore reads and writes Hosts.
type HostStore interface {
	// Hosts lists all hosts, sorted by name.
	Hosts(ctx context.Context) ([]api.Host, error)
	// Host reads a host, and what is on it. The error wraps ErrNotFound when there is no such
	// host.
	Host(ctx context.Context, name string) (*HostView, error)
	// PutHost writes a host's metadata and spec, if change makes them differ. The error wraps
	// ErrNotFound when it is gone.
	PutHost(ctx context.Context, name string, change func(*api.Host)) error
	// RemoveHost deletes a host, and what the store keeps for its agent. A host that is gone is no
	// error.
	RemoveHost(ctx context.Context, name string) error
}

// Finalizer keeps a deleted StorageCluster until the engine has let go of everything that it made.
const Finalizer = "holdfast.io/cluster"

// The kinds that a Change can be of.
const (
	KindCluster = "StorageCluster"
	KindNode    = "StorageNode"
	KindDaemon  = "Daemon"
	KindHost    = "Host"
	KindAction  = "Action"
)

// Change tells of a change in the store that concerns a cluster.
type Change struct {
	Cluster types.NamespacedName
	// Kind is the kind of the object that changed.
	Kind string
	// Object is what changed, such as "daemon/ceph-mon-a".
	Object string
}
