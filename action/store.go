package action

import (
	"context"
	"errors"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ErrConflict is wrapped by the error of a write that came too late: somebody wrote the action since it was read.
var ErrConflict = errors.New("the action changed since it was read")

// ErrNotFound is wrapped by the error for an action that is gone, also when another one has its name now.
var ErrNotFound = errors.New("the action does not exist any more")

// Recorder reads and writes one action. It is safe for concurrent use.
type Recorder interface {
	// Get reads the action as it is stored now, not as a cache has it. Only namespace and name of a count.
	Get(ctx context.Context, a *api.Action) (*api.Action, error)
	// PutStatus writes a.Status durably, on condition that the action still has the UID and the resource version that a
	// has, and returns what is stored then. It writes nothing else, and keeps no reference to a.
	PutStatus(ctx context.Context, a *api.Action) (*api.Action, error)
}

// Store is where the leader finds the actions. Every implementation passes the suite of package action/actiontest.
type Store interface {
	Recorder
	// List returns all actions. It is never older than the writes that this Store has done, or than what earlier leaders
	// wrote before the Store was made. Nobody writes to what it returns.
	List(ctx context.Context) ([]*api.Action, error)
	// Hosts tells of all hosts.
	Hosts(ctx context.Context) (map[string]HostFacts, error)
	// Concern tells what an action on a host concerns that names no cluster: the clusters that use the host (ClusterConcern), and
	// what else may break when it goes. A host that is not there concerns nothing.
	Concern(ctx context.Context, host string) ([]string, error)
	// Remove deletes an action, on condition that it still has the UID that a has. One that is gone is no error.
	Remove(ctx context.Context, a *api.Action) error
	// Notify calls f after each change of an action or of the facts of a host, until ctx ends. It returns at once. f must not
	// block.
	Notify(ctx context.Context, f func())
}

// HostFacts is what of a host decides about its actions.
type HostFacts struct {
	// Joined is when the host was made known. One that was deleted and joined again knows nothing of what was before.
	Joined time.Time
	// Silent is set while the host's agent is not heard, and Since says since when; zero where that is not known.
	Silent bool
	Since  time.Time
}
