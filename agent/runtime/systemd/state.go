package systemd

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
)

// refresh asks systemd for the state of a service, and tells of it if it changed.
func (r *Runtime) refresh(ctx context.Context, name string) (runtime.State, error) {
	// One after the other: what was asked earlier must not be taken for newer.
	done, err := r.looks.Take(ctx, r.ctx, name)
	if err != nil {
		return runtime.State{}, err
	}
	defer done()
	conn, err := r.bus.get()
	if err != nil {
		return runtime.State{}, err
	}
	props, err := conn.GetAllPropertiesContext(ctx, unitName(name))
	if err != nil {
		return runtime.State{}, err
	}
	s, was, is := r.note(name, props)
	if was != is {
		r.keepCount(name, is)
	}
	return s, nil
}

// note takes what systemd says of a service into its state, and tells what was counted and is now.
func (r *Runtime) note(name string, props properties) (s runtime.State, was, is count) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[name]
	if u == nil {
		return s, was, is
	}
	old := u.state
	was = u.count
	u.count = was.with(int(props.u32("NRestarts")))
	u.state = next(old, props, u.count.Total, u.process.LogFile)
	u.state.Stopping = u.stopping && ends(props)
	if !same(old, u.state) {
		r.changes.Notify(name)
	}
	return u.state, was, u.count
}

// properties are those of a unit and its service (org.freedesktop.systemd1(5)).
type properties map[string]any

func (p properties) text(key string) string { s, _ := p[key].(string); return s }
func (p properties) u32(key string) uint32  { n, _ := p[key].(uint32); return n }
func (p properties) i32(key string) int32   { n, _ := p[key].(int32); return n }

// at reads a time, which systemd counts in microseconds; zero means never.
func (p properties) at(key string) time.Time {
	n, _ := p[key].(uint64)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(n))
}

func (p properties) duration(key string) time.Duration {
	n, _ := p[key].(uint64)
	return time.Duration(n) * time.Microsecond
}

// next makes the state from what systemd says and what was known, with how often it was started again so far. systemd forgets how the last process ended when it starts
// the next one.
func next(old runtime.State, p properties, restarts int, log string) runtime.State {
	active, sub := p.text("ActiveState"), p.text("SubState")
	s := runtime.State{Restarts: restarts, LastExit: old.LastExit}
	s.Running = active == "active" && sub == "running"
	if s.Running {
		s.PID, s.Started = int(p.u32("MainPID")), p.at("ExecMainStartTimestamp")
	}
	ended := p.at("ExecMainExitTimestamp")
	switch {
	case !ended.IsZero() && (s.LastExit == nil || !s.LastExit.Time.Equal(ended)):
		s.LastExit = &runtime.Exit{Time: ended, Reason: reason(p.i32("ExecMainCode"), p.i32("ExecMainStatus")), Log: logfile.Tail(log, tailSize)}
	case old.Running && s.Running && old.PID != s.PID:
		// It ended and was started again before anyone looked.
		s.LastExit = &runtime.Exit{Time: s.Started, Reason: "unknown", Log: logfile.Tail(log, tailSize)}
	}
	if sub == "auto-restart" {
		// systemd counts a restart when it begins.
		s.Restarts++
		s.BackOffUntil = ended.Add(p.duration("RestartUSec"))
	}
	return s
}

// ends says whether a service ends, or has ended and is not started again by systemd: what a Stop brings it to. It also comes there otherwise.
func ends(p properties) bool {
	return slices.Contains([]string{"deactivating", "inactive", "failed"}, p.text("ActiveState"))
}

// tailSize bounds Exit.Log, in bytes.
const tailSize = 4096

// reason tells in words how a process ended: code is one of waitid(2)'s, status an exit code or a signal.
func reason(code, status int32) string {
	const exited = 1
	if code == exited {
		return fmt.Sprintf("exit code %d", status)
	}
	return "signal: " + syscall.Signal(status).String()
}

func same(a, b runtime.State) bool {
	return a.Running == b.Running && a.Stopping == b.Stopping && a.PID == b.PID && a.Started.Equal(b.Started) && a.Restarts == b.Restarts &&
		a.BackOffUntil.Equal(b.BackOffUntil) && a.LastExit == b.LastExit
}
