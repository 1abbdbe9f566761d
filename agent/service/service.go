// Package service is the contract between the agent and the types of daemons: one ServiceAgent for each
// type. The suite is package servicetest.
//
// The agent does what all types share: files, Secrets, devices by identity, the process itself, the
// status of the Daemon. A ServiceAgent does what only its type needs. Optional interfaces
// (optional.go) add to it: Reporter reads a state of the service for the driver, Performer carries out
// commands of a driver, Versioner, DeviceMaker, DeviceKeeper, Starter and others hook into preparation.
//
// A ServiceAgent writes to a device only through package gate, which refuses a device that is not
// Available.
package service

import (
	"context"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ServiceAgent deploys one type of daemon on one host (ceph-mon, ceph-osd, etcd, glusterd …). The generic part (files,
// secrets, the process itself) is done by the agent; a ServiceAgent does what only its type needs. Each passes the suite of package servicetest. What it does
// that lasts goes by the packages atomicfile and tool, so that the suite can kill it there.
type ServiceAgent interface {
	// Name is the type of daemon, as in Daemon.spec.type.
	Name() string
	// Initialize is called once, before any daemon of this type is configured. It returns an error when the host cannot
	// run this type at all; the text says what is missing and how to get it.
	Initialize(ctx context.Context, host *Host) error
	// ConfigureLocalService makes everything ready for the process to start. Files are already written. It is idempotent
	// and may be cut off at any point and called again.
	ConfigureLocalService(ctx context.Context, local *Local) error
	// DestroyLocalService removes what ConfigureLocalService made outside the daemon's own directories. The process has
	// already ended. It is idempotent.
	DestroyLocalService(ctx context.Context, local *Local) error
}

// DeviceMaker is a ServiceAgent that makes some of its daemons' devices, as parts of others (api.DaemonDevice, Of).
type DeviceMaker interface {
	// MakeDevices makes what the Daemon names and is not on the host, or has the kernel show it. Local.Devices has what is. It is called
	// before ConfigureLocalService, while the process does not run, and is idempotent: it may be cut off at any point and called again.
	MakeDevices(ctx context.Context, local *Local) error
}

// Host is what a ServiceAgent may know of its host.
type Host struct {
	Name string
}

// Local is one daemon on this host.
type Local struct {
	// Daemon is the wanted daemon. Nobody writes to it.
	Daemon *api.Daemon
	// Data is the daemon's own directory, kept over restarts and boots.
	Data string
	// Run is its directory for sockets, gone after a boot.
	Run string
	// Log is its directory for logs.
	Log string
	// Devices maps the names in Daemon.spec.devices to the devices as they are now.
	Devices map[string]api.Device
	// Inventory is all that the host had when they were looked for. It is empty for a Daemon without devices.
	Inventory []api.Device
	// Keys are what devices are encrypted with, by their names. No one writes them anywhere.
	Keys map[string][]byte
	// Command is Daemon.spec.command with its words replaced.
	Command []string
	// Parameters is Daemon.spec.parameters with its words replaced.
	Parameters map[string]string
	// PID is the daemon's process, as in Daemon.status.pid, where a report or a command is asked for; 0 where none runs.
	PID int32
	// Outdated is set, beside PID, where the next process would run another release of the program,
	// by the word of the runtime: programs that were replaced under a process are not meant.
	Outdated bool
}

// Reporter is a ServiceAgent that can tell what its service says of itself. The agent asks it while the process runs, of daemons
// with the parameter api.ParameterReport: when the state of the process changed, after each command, and every few seconds.
type Reporter interface {
	// Report is what the service says of its state, for its driver to read (Daemon.status.report): compact, at most api.MaxReport
	// bytes, and the same text while nothing that matters changes, because each change is written and looked at. It has no
	// clocks in it, and measures are rounded. It may be called often, and changes nothing.
	Report(ctx context.Context, local *Local) (string, error)
}

// Performer is a ServiceAgent that carries out commands of its driver on the host itself. The commands of one daemon are carried
// out one at a time.
type Performer interface {
	// Perform carries out a command and says in a sentence what came of it. It is idempotent: it may be cut off at any point and
	// called again, also after it ended well. It ends within a minute; what takes longer it starts, and leaves it to reports to
	// tell how that goes on. The text of its error reaches whoever asked, so it says what is wrong and what to do, and holds no
	// secret.
	Perform(ctx context.Context, local *Local, cmd Command) (message string, err error)
}

// Command is one thing that a driver asks of the service on this host (package engine, Command).
type Command struct {
	// Verb says what to do, in the driver's words.
	Verb string
	// Object is what it is done to.
	Object string
	Params map[string]string
	// Secret is what the Secret holds that the command names; nil where it names none.
	Secret map[string][]byte
}

// Versioner is a ServiceAgent that can tell which release of its program is installed on the host.
type Versioner interface {
	// Version is the installed release, such as "16.2.15".
	Version(ctx context.Context) (string, error)
}
