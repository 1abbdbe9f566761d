package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Report implements service.Reporter.
func (s *sleeper) Report(_ context.Context, l *service.Local) (string, error) {
	s.mu.Lock()
	report := s.report
	s.mu.Unlock()
	return report(l)
}

func (s *sleeper) says(text string, err error) {
	s.set(func(s *sleeper) { s.report = func(*service.Local) (string, error) { return text, err } })
}

func reporting(d *api.Daemon) { d.Spec.Parameters = map[string]string{api.ParameterReport: "pool"} }

func (w *world) awaitReport(text, message string) {
	w.t.Helper()
	w.await(fmt.Sprintf("the report %.40q and the message %q", text, message), func() bool {
		s := w.daemon("one").Status
		return s.Report == text && strings.Contains(s.Message, message) && (message != "" || s.Message == "")
	})
}

// What the service says of itself is told when it changes, and only then; it stays while the process does not run, and goes when
// nobody asks any more.
func TestReports(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", reporting), sleeperDaemon("quiet"))
	var asked, pid atomic.Int32
	w.service.report = func(l *service.Local) (string, error) {
		asked.Add(1)
		pid.Store(l.PID)
		return l.Daemon.Name + " has " + l.Parameters[api.ParameterReport], nil
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	w.awaitState("quiet", api.DaemonRunning)
	w.awaitReport("one has pool", "")
	w.mu.Lock()
	told := w.told
	w.mu.Unlock()
	if is := w.daemon("one").Status.PID; pid.Load() != is || is == 0 {
		t.Errorf("asked of process %d, and process %d runs", pid.Load(), is)
	}
	n := asked.Load()
	w.await("three more looks", func() bool { return asked.Load() >= n+3 })
	w.mu.Lock()
	if w.told != told {
		t.Errorf("a report that is the same was written %d times", w.told-told)
	}
	w.mu.Unlock()
	if s := w.daemon("quiet").Status; s.Report != "" || s.Message != "" {
		t.Errorf("nobody asked for a report: %+v", s)
	}
	w.service.says("something else", nil)
	w.awaitReport("something else", "")
	w.change("one", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	w.awaitState("one", api.DaemonStopped)
	w.awaitReport("something else", "")
	w.change("one", func(d *api.Daemon) { d.Spec.State, d.Spec.Parameters = api.WantRunning, nil })
	w.awaitState("one", api.DaemonRunning)
	w.awaitReport("", "")
}

// A report that cannot be had is told in the daemon's message, and the last one stays.
func TestReports_failing(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", reporting), sleeperDaemon("two", reporting, func(d *api.Daemon) { d.Spec.Type = "mute" }))
	w.service.says("all is well", nil)
	w.run()
	w.awaitReport("all is well", "")
	for _, test := range []struct {
		text    string
		err     error
		message string
	}{
		{"", errors.New("the service does not answer"), "it runs, but reports no state: the service does not answer"},
		{strings.Repeat("x", api.MaxReport+1), nil, "it is 131073 bytes long, and at most 131072 are taken"},
		{"\xff", nil, "it is no text"},
		// DEL is written with six bytes.
		{strings.Repeat("x", api.MaxReport-1) + "\x7f", nil, "it is 131077 bytes long, and at most 131072 are taken"},
	} {
		w.service.says(test.text, test.err)
		w.awaitReport("all is well", test.message)
	}
	w.service.set(func(s *sleeper) { s.report = func(*service.Local) (string, error) { panic("boom") } })
	w.awaitReport("all is well", "a fault in the agent (its log has more): boom")
	w.service.says("", errors.New("it says \x1b[2J"))
	w.awaitReport("all is well", `it says \x1b[2J`)
	w.service.says(strings.Repeat("x", api.MaxReport), nil)
	w.awaitReport(strings.Repeat("x", api.MaxReport), "")
	w.await("what the other type says", func() bool {
		return strings.Contains(w.daemon("two").Status.Message, `reports nothing of daemons of type "mute": upgrade Holdfast`)
	})
}

// Whoever asked for a command finds what came of it in the report when the command is done.
func TestReports_afterCommand(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", reporting))
	w.service.says("before", nil)
	w.service.perform = func(context.Context, *service.Local, service.Command) (string, error) {
		w.service.says("after", nil)
		return "", nil
	}
	w.run()
	w.awaitReport("before", "")
	w.create(commandTo(t, "a", "one"))
	a := &api.Action{}
	w.await("the end", func() bool {
		if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, a); err != nil {
			t.Fatal(err)
		}
		if got := w.daemon("one").Status.Report; a.Status.State == api.ActionDone && got != "after" {
			t.Fatalf("the command is done, and the report says %q", got)
		}
		return a.Status.State.Final()
	})
}

// The first report after a start of the agent, with nothing changed, writes nothing; and a process that was started again is
// asked at once.
func TestReports_agentRestarts(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", reporting))
	w.service.says("the same", nil)
	w.run()
	w.awaitReport("the same", "")
	w.halt()
	version := w.daemon("one").ResourceVersion
	var asked atomic.Int32
	w.service.set(func(s *sleeper) {
		s.report = func(*service.Local) (string, error) { asked.Add(1); return "the same", nil }
	})
	w.run()
	w.await("two reports", func() bool { return asked.Load() >= 2 })
	if d := w.daemon("one"); d.ResourceVersion != version || d.Status.Report != "the same" {
		t.Errorf("it was written anew: %+v", d.Status)
	}
}
