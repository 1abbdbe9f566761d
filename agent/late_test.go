package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// late is a daemon whose first process does not end when it is asked to. Others do.
func late(d *api.Daemon) {
	d.Spec.Command = []string{"sh", "-c", "[ -e first ] || trap '' TERM; echo started; [ -e first ] && exec sleep 1000; : > first; while :; do sleep 0.05; done"}
	d.Spec.StopTimeout.Duration = deadline
}

// hasty cuts off the first Stop, as the deadline does that of a process which hangs on a disk: when giveUp is closed. The agent hears of that when goOn is.
type hasty struct {
	runtime.Runtime
	giveUp, goOn chan struct{}
}

func newHasty() *hasty { return &hasty{giveUp: make(chan struct{}), goOn: make(chan struct{})} }

func (h *hasty) Stop(ctx context.Context, name string) error {
	select {
	case <-h.goOn:
		return h.Runtime.Stop(ctx, name)
	default:
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.giveUp:
		case <-short.Done():
		}
		cancel()
	}()
	err := h.Runtime.Stop(short, name)
	select {
	case <-h.goOn:
	case <-ctx.Done():
	}
	return err
}

// restartLate has a daemon restarted whose process does not end before Stop has given up.
func restartLate(t *testing.T, change ...func(*api.Daemon)) (w *world, pid int) {
	t.Helper()
	w = newWorld(t, talker("one", append(change, late)...))
	w.hasty = newHasty()
	w.run()
	pid = int(w.awaitState("one", api.DaemonRunning).Status.PID)
	w.await("the process that is not impressed", func() bool {
		_, err := os.Stat(filepath.Join(w.data("one"), "first"))
		return err == nil
	})
	w.create(restartOf("one"))
	w.await("the end that was asked for", func() bool { return w.process("one").Stopping })
	close(w.hasty.giveUp)
	return w, pid
}

func (w *world) process(name string) runtime.State {
	s, _ := w.runtime.State("default." + name)
	return s
}

// dies kills a process and waits until the runtime has seen that.
func (w *world) dies(name string, pid int) {
	w.t.Helper()
	kill(w.t, pid)
	w.await("the late end", func() bool { return !w.process(name).Running })
}

// startedOnce checks that the process of a daemon was started once since its first one ended.
func (w *world) startedOnce(name string, first int) {
	w.t.Helper()
	d := w.awaitState(name, api.DaemonRunning)
	s := w.process(name)
	w.await("the start in the log", func() bool { return w.starts(name) >= 2 })
	if n := w.starts(name); n != 2 || s.PID == first || s.PID != int(d.Status.PID) || s.Stopping || s.Restarts != 0 || runtimetest.Alive(first) {
		w.t.Errorf("it was started %d times; was %d, is %+v", n, first, s)
	}
	w.awaitNothingRemembered()
}

// A process that dies between two attempts to stop it is started again.
func TestRestart_diesBetweenStops(t *testing.T) {
	w, pid := restartLate(t)
	w.dies("one", pid)
	close(w.hasty.goOn)
	w.awaitAction(api.ActionDone, "one runs again, as process ")
	w.startedOnce("one", pid)
}

// A process that was asked to end, and dies after the restart was cancelled, is started again, and the cancel is over then.
func TestRestart_diesAfterCancel(t *testing.T) {
	for _, test := range []struct {
		name string
		then func(w *world, pid int)
	}{
		{"before the agent looks again", func(w *world, pid int) {
			w.dies("one", pid)
			close(w.hasty.goOn)
		}},
		{"after it", func(w *world, pid int) {
			close(w.hasty.goOn)
			w.await("another attempt", func() bool { return w.daemon("one").Status.State == api.DaemonStopping })
			kill(w.t, pid)
		}},
		{"while no agent is there", func(w *world, pid int) {
			w.halt()
			kill(w.t, pid)
			close(w.hasty.goOn)
			w.run()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, pid := restartLate(t)
			w.cancelAction()
			w.await("the cancel to be under way", func() bool { return w.action().Status.Steps[1].State == api.StepUndoing })
			test.then(w, pid)
			w.awaitAction(api.ActionCancelled, fmt.Sprintf("cancelled; process %d could not be kept from ending: now one runs, as process ", pid))
			w.startedOnce("one", pid)
		})
	}
}

// A cancel is not over while the work on the daemon, whose process has ended, is only in line: with an agent that was just started, too. Where that work
// has failed it is over, and says that the daemon does not run, until there is news of the daemon.
func TestTakeBack_noProcess(t *testing.T) {
	w := newWorld(t)
	rt, err := detached.New(detached.Config{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	a, err := newAgent(Config{Name: "h1", DataDir: w.dir, RunDir: w.dir, Runtime: rt, RuntimeKind: api.RuntimeDetached, Inventory: w.devices, client: w.api})
	if err != nil {
		t.Fatal(err)
	}
	defer a.work.queue.ShutDown()
	defer a.acts.queue.ShutDown()
	defer a.reports.queue.ShutDown()
	r, key := &restart{a}, client.ObjectKey{Namespace: "default", Name: "one"}
	want := func(done bool, text string) {
		t.Helper()
		if p := r.takeBack(key, process{PID: 7}); p.Done != done || !strings.Contains(p.Message, text) {
			t.Errorf("%+v, want done %t, %q", p, done, text)
		}
	}
	want(false, "starting the process")
	a.work.ended(key, errors.New("no disk"))
	want(true, "process 7 could not be kept from ending: now one does not run")
	a.work.add(key)
	want(false, "starting the process")
}

// What is not wanted running any more when its process dies late is not started.
func TestRestart_diesUnwanted(t *testing.T) {
	for want, is := range map[api.WantedState]api.DaemonState{
		api.WantStopped: api.DaemonStopped, api.WantPrepared: api.DaemonPrepared, api.WantWatched: api.DaemonStopped,
	} {
		t.Run(string(want), func(t *testing.T) {
			w, pid := restartLate(t)
			w.change("one", func(d *api.Daemon) { d.Spec.State = want })
			w.awaitAction(api.ActionFailed, fmt.Sprintf("is %s, not Running", want))
			w.dies("one", pid)
			close(w.hasty.goOn)
			w.awaitState("one", is)
			if s := w.process("one"); s.Running || w.starts("one") != 1 {
				t.Errorf("it was started %d times; is %+v", w.starts("one"), s)
			}
		})
	}
}

// The status of a process that does not run says why, and when it starts again.
func TestRunningStatus(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	ended := &api.DaemonExit{Reason: "exit code 1", Message: "no rule knows it"}
	taken := &api.DaemonExit{Reason: "exit code 1", Cause: api.ReasonPortInUse, Message: "port 3300 is taken by nginx"}
	for want, tt := range map[string]struct {
		state runtime.State
		exit  *api.DaemonExit
	}{
		"BackOff: it ended (exit code 1)":                           {runtime.State{}, ended},
		"BackOff: it ended (exit code 1) and restarts at 03:02:01Z": {runtime.State{BackOffUntil: at}, ended},
		"BackOff: it ended (exit code 1): port 3300 is taken by nginx; restarts at 03:02:01Z": {
			runtime.State{BackOffUntil: at}, taken,
		},
		"BackOff: it ended (exit code 1) and restarts at 03:02:01Z: no room": {
			runtime.State{BackOffUntil: at, Problem: "no room"}, ended,
		},
		"BackOff: no room":                        {runtime.State{Problem: "no room"}, nil},
		"Preparing: its process is being started": {},
		"Running: ":                               {runtime.State{Running: true}, nil},
		"Running: it cannot be seen":              {runtime.State{Running: true, Problem: "it cannot be seen"}, nil},
	} {
		if got := runningStatus(tt.state, "1", tt.exit); fmt.Sprint(got.State, ": ", got.Message) != want {
			t.Errorf("%s, %q, want %q", got.State, got.Message, want)
		}
	}
}
