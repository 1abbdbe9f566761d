// Package runtime supervises the processes of daemons on one host. Three implementations pass the
// suite of package runtimetest: Detached (plain processes, for machines without systemd), Systemd
// (one unit per daemon, over D-Bus) and Pod (one Kubernetes pod per daemon, pinned to the node of
// the agent).
package runtime

import (
	"context"
	"time"
)

// How a process ended, as State says, where programs read it: package lastwords.
const (
	// OutOfMemory is the end of a container that the kernel killed.
	OutOfMemory = "killed by the kernel: out of memory"
	// NotStarted begins the end of a process that never was one.
	NotStarted = "cannot be started"
)

// Process is what to run. Name is unique on the host and safe in a file or unit name.
type Process struct {
	Name string
	// Command is the program and its arguments.
	Command []string
	// Dir is the working directory.
	Dir string
	// RunDir, when not empty, is a directory that is made before each start, because a boot removes it.
	RunDir string
	// LogFile is where standard output and error go; it is rotated. A runtime whose processes have
	// a log elsewhere, as pods have, leaves it alone.
	LogFile string
	// StopTimeout is how long Stop waits after SIGTERM before it kills.
	StopTimeout time.Duration
	// KeepChildren leaves the processes alone that this one started, when it ends or is stopped.
	// Without it they are killed; a runtime whose Capabilities say so kills them always.
	KeepChildren bool
	// Once keeps a process from being started again after its end, whoever asked for the end: it
	// stays known, as not running, until it is stopped. A runtime whose Capabilities lack Once
	// starts it again all the same.
	Once bool `json:",omitempty"`
	// Of is the daemon that the process belongs to.
	Of Owner `json:",omitzero"`
	// Needs is what the process needs of the host beyond its own directories.
	Needs Needs `json:",omitzero"`
}

// State is what a runtime knows of a process.
type State struct {
	Running bool
	// Stopping is set when Stop has asked the process to end and is not over: when it was cut off, also after the process has ended, until Stop or
	// Start is called again, and for the next agent. An end that nobody asked for, or somebody else than Stop, is none of that.
	Stopping bool
	PID      int
	Started  time.Time
	// Restarts counts the ends that were not asked for since Start was first called.
	Restarts int
	// BackOffUntil is when the process is started again; zero when it runs or is stopped.
	BackOffUntil time.Time
	// LastExit is nil until the process ended once.
	LastExit *Exit
	// Outdated is set when the process runs, or ran last, with a program that the next start would not
	// take, such as that of another image.
	Outdated bool
	// Problem says why the process does not run although nothing has asked for its end and it is
	// not merely waiting to be started again, or what else is wrong with what runs it: a sentence,
	// empty when all is well.
	Problem string
}

// Exit is how a process ended.
type Exit struct {
	Time time.Time
	// Reason is "exit code N", "signal: NAME", or "unknown" where the process was not this agent's child.
	Reason string
	// Log is the end of what it wrote, at most 4 KiB.
	Log string
}

// Runtime starts processes that outlive the agent, and keeps them running.
//
// All methods are safe for concurrent use, for different names; calls for one name are serialized by the runtime.
type Runtime interface {
	// Start makes sure that the process runs and is restarted, with back-off, whenever it ends. A process that already
	// runs under this name, started by this or an earlier agent, is adopted and not started again, also when p differs. A
	// Stop that was cut off is carried through first, which may take as long.
	Start(ctx context.Context, p Process) error
	// Stop ends the process (SIGTERM, then SIGKILL after p.StopTimeout) and forgets it. Nothing running is no error.
	Stop(ctx context.Context, name string) error
	// State returns what is known of a process; ok is false when the runtime does not know the name.
	State(name string) (s State, ok bool)
	// Names lists the processes that the runtime keeps, those of earlier agents among them.
	Names() []string
	// Changes receives the name of a process whose State changed. It is never closed. A slow reader loses nothing but
	// repetitions.
	Changes() <-chan string
	// Capabilities says what the runtime can do that not every one can.
	Capabilities() Capabilities
	// Close stops watching. The processes go on.
	Close() error
}
