package lastwords

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/listener"
)

// Notes remember why daemons ended, so that each end is looked into once. They are safe for concurrent use, but for
// Log, which is set before.
type Notes struct {
	// Log is the file of a daemon's log.
	Log func(name types.NamespacedName) string

	mu   sync.Mutex
	last map[types.NamespacedName]note
}

type note struct {
	at    time.Time
	cause Cause
}

// logTail is how much of a log is looked at, in bytes: a daemon of Ceph that crashes dumps much after the cause.
const logTail = 1 << 20

// Exit is the status's form of how a daemon's process ended; nil where it never did. What the process wrote is read
// from its log, or is that of the exit where the runtime has no such file.
func (n *Notes) Exit(d *api.Daemon, e *runtime.Exit) *api.DaemonExit {
	if e == nil {
		return nil
	}
	at := metav1.NewMicroTime(e.Time.Truncate(time.Microsecond))
	if have := d.Status.LastExit; have != nil && have.Time.Equal(&at) && have.Message != "" {
		return have.DeepCopy() // an earlier run of the agent looked into it
	}
	name := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	c, known := n.known(name, e.Time)
	if !known {
		c = causeOf(d, e, cmp.Or(logfile.Tail(n.Log(name), logTail), e.Log))
		n.keep(name, note{e.Time, c})
	}
	return &api.DaemonExit{Time: at, Reason: e.Reason, Log: e.Log, Cause: c.Reason, Message: c.Message, Next: c.Next}
}

func (n *Notes) known(name types.NamespacedName, at time.Time) (Cause, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	have, ok := n.last[name]
	return have.cause, ok && have.at.Equal(at)
}

func (n *Notes) keep(name types.NamespacedName, x note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = map[types.NamespacedName]note{}
	}
	n.last[name] = x
}

// Forget forgets a daemon that is gone.
func (n *Notes) Forget(name types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.last, name)
}

func causeOf(d *api.Daemon, e *runtime.Exit, log string) Cause {
	c := Of(d, e.Reason, e.Time, log)
	if c.Port == "" {
		return c
	}
	if name, pid, err := listener.Of(c.Port); err == nil {
		c.Message = fmt.Sprintf("port %s is taken by %s (process %d)", c.Port, name, pid)
		c.Next = fill(fmt.Sprintf("stop %s on host {host}: 'ps -fp %d' shows what it is", name, pid)+retries, d)
	}
	return c
}

// Text says how a process ended and why, and when it starts again, if that is known.
func Text(e *api.DaemonExit, again time.Time) string {
	text, and := fmt.Sprintf("it ended (%s)", e.Reason), " and"
	if e.Cause != "" {
		text, and = text+": "+e.Message, ";"
	}
	if again.IsZero() {
		return text
	}
	return text + and + " restarts at " + again.UTC().Format(time.TimeOnly+"Z")
}
