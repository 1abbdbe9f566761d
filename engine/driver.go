package engine

import (
	"context"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Driver knows one storage system. All that the engine knows of Ceph, GlusterFS or Torus, it knows through this contract. Package
// conformance is the suite that each driver passes.
// A Driver may be used by several goroutines at once. Of one cluster, Observe and Perform are called one at a time each, but one
// may be called while the other goes on.
//
// A Driver heeds the mode of each host (api.HostMode), and speaks of it in decisions whose Object is "host/<name>": VerdictRefuse
// where the mode cannot be had, VerdictWait while it is not reached yet, and none when it is. A daemon that nothing needs any
// more on a host that drains is removed by the plan, also when the agent is silent: the action host.remove lets only such
// daemons go without their agent's word. A host whose agent is silent is told to stop nothing: what is safe now may not be when it hears.
//
// Where View.Restart names a daemon, Observe asks the storage system, and Plan says in a decision whose Object is RestartObject, what is against
// starting that daemon again now: VerdictWait where what is under way will change that, such as copies that are being made, and VerdictRefuse
// where nothing will by itself, also while the storage system does not answer. It says nothing where the others can do without the daemon, or do
// so already, as of one that is hung and was found to be away: a restart is how that one is mended. Of a view that asks for none nothing is asked
// or said.
//
// That the storage system does not answer (View.System is nil) says nothing of what it holds: meanwhile nothing is stopped, removed, or
// asked for that could cost data or service. A leader may die after any write or command, and the next one, with a driver that
// remembers nothing, comes to the same end.
//
// While a cluster is only observed (api.ClusterObserved) the plan is not carried out, and the statuses of resources in it are written
// nevertheless: they say then what is seen, and nothing of what the plan would make of them.
type Driver interface {
	// Type is the storage system.
	Type() api.StorageType
	// Observe asks the storage system for its own state; the result becomes View.System. It returns nil, nil when the
	// system cannot be expected to answer yet (nothing of it was ever started). An error is a node-specific error: the run
	// goes on without the answer.
	Observe(ctx context.Context, view *View, secrets SecretReader) (any, error)
	// Unanswered says in a few words why the storage system's word is missing from a view that was observed, although something of it was
	// started before: what is planned of such a view is not what would come of it. It is empty where the word is there, or nothing was ever
	// started. It is pure.
	Unanswered(view *View) string
	Planner
	// MakeSecret makes what a Secret shall hold. A kind that no plan has is an error.
	MakeSecret(want SecretWant) (map[string][]byte, error)
	// Perform carries out one command of a plan. It may be the repetition of one that was carried out. A verb that no plan has is an
	// error. It ends soon after ctx does.
	Perform(ctx context.Context, view *View, cmd Command, secrets SecretReader) error
	// Forget releases what the driver holds for a cluster (connections, caches): it was deleted, or leadership was lost.
	Forget(namespace, name string)
}

// ActionDriver is a Driver that carries out kinds of Actions of its own, such as a step that a person asks for.
type ActionDriver interface {
	Driver
	// Handlers carry them out by what a Store holds. Where only their kinds are asked for, the Store is nil.
	Handlers(store Store) []action.Handler
}

// Wiper is a Driver of a storage system that wipes the devices that leave a cluster with the deletion policy Wipe.
// Others leave them empty, and with their file system.
type Wiper interface {
	Driver
	// Elsewhere says whether the device of a daemon is in another host than the daemon, as the hosts report: there it is
	// left as it is. It is pure.
	Elsewhere(d *api.Daemon, hosts []api.Host) bool
}

// Labeler is a Driver of a storage system that writes on its devices whose they are.
type Labeler interface {
	Driver
	// Needs says why a cluster needs what is on a device, by the label that its host reports; empty where it does not.
	// unknown is set where only the storage system can say that, and the view has no answer of it. It is pure.
	Needs(view *View, device *api.Device) (why string, unknown bool)
}

// SecretReader reads the Secrets of one cluster.
type SecretReader interface {
	// Secret returns what the named Secret holds, or an error that wraps ErrNotFound.
	Secret(ctx context.Context, name string) (map[string][]byte, error)
}
