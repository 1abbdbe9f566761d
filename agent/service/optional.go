package service

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// DeviceKeeper is a ServiceAgent of daemons that have several devices, of which each comes, goes
// and fails by itself. None of them holds up the process or the others: ConfigureLocalService is
// called without those that are not on the host, and does not touch any; DestroyLocalService as
// well.
type DeviceKeeper interface {
	// ConfigureDevices brings the devices to what the daemon wants, and gives up those that it had
	// and wants no more. It is called before the process starts and, unlike ConfigureLocalService,
	// while it runs: when the Daemon was changed, and by each new agent. It is idempotent. Its
	// error becomes the daemon's message; the process is started all the same.
	ConfigureDevices(ctx context.Context, local *Local) error
}

// DeviceWarden is a DeviceKeeper that can tell whether its devices are still as ConfigureDevices
// left them. Where they are not, such as after somebody unmounted one, ConfigureDevices is called
// again, also while the process runs.
type DeviceWarden interface {
	DevicesKept(local *Local) bool
}

// Inheritor is a ServiceAgent that can tell whether what lies in a daemon's directories was left
// there by a Daemon of the same name that is gone, and is of no use to this one.
type Inheritor interface {
	// Foreign is asked before each attempt to make the daemon ready. Where it says yes, the
	// leftovers are cleared away as those of a removed daemon whose data is retained, and it is
	// asked again. Once it has said no, it says no to whatever an attempt leaves.
	Foreign(local *Local) (bool, error)
}

// Forker is a ServiceAgent whose process starts others that serve on without it. A restart of the
// process leaves them alone.
type Forker interface {
	// EndOthers ends them: the daemon is wanted stopped or is being removed. Its own process has
	// already ended. It is idempotent.
	EndOthers(ctx context.Context, local *Local) error
}

// DeviceCloser is a ServiceAgent that opens devices for its daemons which are to be closed when
// nobody uses them.
type DeviceCloser interface {
	// CloseDevices closes them: the daemon is wanted stopped or is being removed, and its process
	// has ended. Local has no Devices. It is idempotent, and called often.
	CloseDevices(ctx context.Context, local *Local) error
}

// Keeper is a ServiceAgent that can tell whether what its daemon cannot start without is still
// there. Where it is not, a process that ended is made ready anew instead of being started again
// and again.
type Keeper interface {
	Kept(local *Local) bool
}

// Waiter is a ServiceAgent whose daemons do their part only a while after their process has begun.
type Waiter interface {
	// Awaits says what a process that runs waits for until it does its part, in the words of the
	// storage system where it has some; empty when it does it. It is asked again and again, and has
	// a deadline of its own.
	Awaits(ctx context.Context, local *Local) (string, error)
}

// Starter is a ServiceAgent that does something on the host before each start of its daemons.
type Starter interface {
	// BeforeStart is called by the runtimes Detached, before each start, and Pod, before each pod
	// is made; systemd starts its processes alone. A process of the daemon may run: one that it
	// started before, or the daemon's own where an answer was lost. It is called also for a process
	// from the records of the time before a boot, when nothing is known of the Daemon yet. It is
	// idempotent. The process is started whatever it returns.
	BeforeStart(p runtime.Process) error
}

// Confined is a ServiceAgent whose daemons need more of their host than their own directories,
// where a runtime confines them. A daemon of another one runs as root without any capability of
// root.
type Confined interface {
	// Needs is what a daemon needs of its host.
	Needs(local *Local) runtime.Needs
}

// NeedsOf is what a daemon needs of its host, its own directories among it. What the agent mounts
// there it sees.
func NeedsOf(a ServiceAgent, local *Local) runtime.Needs {
	var needs runtime.Needs
	if c, ok := a.(Confined); ok {
		needs = c.Needs(local)
	}
	own := runtime.Directory{Path: filepath.Dir(local.Data), Mounts: runtime.MountsFromHost}
	if !slices.ContainsFunc(needs.Directories, func(d runtime.Directory) bool { return d.Path == own.Path }) {
		needs.Directories = slices.Insert(needs.Directories, 0, own)
	}
	return needs
}
