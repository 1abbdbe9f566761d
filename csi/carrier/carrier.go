// Package carrier runs the processes that carry volumes in user space. They outlive the driver: in
// Kubernetes each is a pod of its own, elsewhere a process of the machine.
package carrier

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

const (
	// lookEvery is how often a condition is looked at that nothing tells of.
	lookEvery = 50 * time.Millisecond
	// stopTimeout is how long a process may take to write what it holds.
	stopTimeout = 20 * time.Second
	logName     = "log"
)

// Runtime is the part of a runtime.Runtime that carriers need.
type Runtime interface {
	Start(ctx context.Context, p runtime.Process) error
	Stop(ctx context.Context, name string) error
	State(name string) (s runtime.State, ok bool)
}

// Carriers runs one process for each volume.
type Carriers struct {
	// Runtime starts and stops processes.
	Runtime Runtime
	// Node is this node where processes of other nodes have names from the same space, as pods have.
	Node string
	// Namespace is where processes are pods; empty: they are processes of this machine.
	Namespace string
	// Owner says whose a volume's process is; nil: nobody's.
	Owner func(v backend.Volume, process string) runtime.Owner
}

// Name is the name of a volume's process. A volume that several nodes have has a process on each.
func (c *Carriers) Name(v backend.Volume) string {
	name := "volume-" + filepath.Base(v.Dir)
	if c.Node != "" {
		name += "-" + backend.Dir(c.Node)
	}
	return name
}

// Start starts the volume's process, which is never started again by itself. Mounts that it makes
// in the volume's directory appear on the node.
func (c *Carriers) Start(ctx context.Context, v backend.Volume, command ...string) error {
	return c.start(ctx, v, stopTimeout, command, v.Dir)
}

// start starts the volume's process. Mounts that it makes in the directories appear on the node.
func (c *Carriers) start(
	ctx context.Context, v backend.Volume, timeout time.Duration, command []string, dirs ...string,
) error {
	needs := runtime.Needs{Privileged: true}
	for _, dir := range dirs {
		needs.Directories = append(needs.Directories, runtime.Directory{Path: dir, Mounts: runtime.MountsBoth})
	}
	p := runtime.Process{
		Name: c.Name(v), Command: command, Dir: v.Dir, LogFile: filepath.Join(v.Dir, logName),
		StopTimeout: timeout, Once: true, Needs: needs,
	}
	if c.Owner != nil {
		p.Of = c.Owner(v, p.Name)
	}
	return c.Runtime.Start(ctx, p)
}

// Stop ends the volume's process. One that is not there is no error.
func (c *Carriers) Stop(ctx context.Context, v backend.Volume) error {
	return c.Runtime.Stop(ctx, c.Name(v))
}

// Known says whether there is a process for the volume, and whether it is of use: it runs, and
// nobody has asked for its end.
func (c *Carriers) Known(v backend.Volume) (known, useful bool) {
	s, known := c.Runtime.State(c.Name(v))
	return known, known && s.Running && !s.Stopping
}

// Way is a sentence that names the process of a volume, and says how it carries the volume.
func (c *Carriers) Way(v backend.Volume, how string) string {
	return fmt.Sprintf("%s carries volume %s on this node: %s", c.what(v), v.Handle.Name, how)
}

// what is what people call the process of a volume.
func (c *Carriers) what(v backend.Volume) string {
	if c.Namespace == "" {
		return "process " + c.Name(v)
	}
	return "pod " + c.Namespace + "/" + c.Name(v)
}

// Problem is a sentence about a volume whose process has ended; empty while it runs.
func (c *Carriers) Problem(v backend.Volume) string {
	s, _ := c.Runtime.State(c.Name(v))
	if s.Running {
		return ""
	}
	how := "has ended"
	if s.LastExit != nil {
		how += " (" + s.LastExit.Reason + ")"
	}
	return "the " + c.what(v) + " that carries the volume " + how + ", so that all reads and writes fail; " +
		"delete the pod that uses the volume"
}

// Await waits until a condition holds that the volume's process brings about. It fails when the
// process has ended. late is the sentence for a condition that does not hold in time.
func (c *Carriers) Await(ctx context.Context, v backend.Volume, late string, holds func() (bool, error)) error {
	for {
		if ok, err := holds(); err != nil || ok {
			return err
		}
		if s, known := c.Runtime.State(c.Name(v)); !known || !s.Running {
			return status.Errorf(codes.Unavailable,
				"the process %s that carries the volume ended: %s; the call is made again", c.Name(v), lastWords(s))
		}
		select {
		case <-ctx.Done():
			return status.Error(codes.DeadlineExceeded, late)
		case <-time.After(lookEvery):
		}
	}
}

func lastWords(s runtime.State) string {
	if s.LastExit == nil {
		return "nothing is known of its end"
	}
	lines := strings.Split(strings.TrimSpace(s.LastExit.Log), "\n")
	return fmt.Sprintf("%s: %s", s.LastExit.Reason, lines[len(lines)-1])
}
