package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// talker is a Daemon whose process says so when it starts.
func talker(name string, change ...func(*api.Daemon)) *api.Daemon {
	return sleeperDaemon(name, append([]func(*api.Daemon){func(d *api.Daemon) {
		d.Spec.Command = []string{"sh", "-c", "echo started; exec sleep 1000"}
	}}, change...)...)
}

// starts counts how often the process of a talker was started.
func (w *world) starts(name string) int {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(w.data(name)), "log", "daemon.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return bytes.Count(data, []byte("started\n"))
}

// restart is an Action that has its turn.
func restartOf(daemon string, change ...func(*api.Action)) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "restart", UID: types.UID("uid-restart"), CreationTimestamp: metav1.Now()},
		Spec:       api.ActionSpec{Kind: "daemon.restart", Target: "daemon/" + daemon, Host: "h1", Want: api.WantDone},
		Status:     api.ActionStatus{State: api.ActionNew, Executor: api.ByAgent},
	}
	for _, c := range change {
		c(a)
	}
	return a
}

func (w *world) action() *api.Action {
	w.t.Helper()
	a := &api.Action{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "restart"}, a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) awaitAction(state api.ActionState, message string) *api.Action {
	w.t.Helper()
	var a *api.Action
	w.await(fmt.Sprintf("the action %s, %q", state, message), func() bool {
		a = w.action()
		if a.Status.State.Final() && a.Status.State != state {
			w.t.Fatalf("it ended as %s: %s", a.Status.State, a.Status.Message)
		}
		return a.Status.State == state && strings.Contains(a.Status.Message, message)
	})
	return a
}

func TestRestart(t *testing.T) {
	w := newWorld(t, talker("one"), talker("two"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	other := w.awaitState("two", api.DaemonRunning)
	w.await("the first start", func() bool { return w.starts("one") == 1 })
	w.create(restartOf("one"))
	a := w.awaitAction(api.ActionDone, "one runs again, as process ")
	w.await("the new process", func() bool {
		d := w.daemon("one")
		return d.Status.State == api.DaemonRunning && d.Status.PID != first.Status.PID
	})
	if runtimetest.Alive(int(first.Status.PID)) || !runtimetest.Alive(int(other.Status.PID)) || w.daemon("one").Status.Restarts != 0 {
		t.Errorf("status %+v", w.daemon("one").Status)
	}
	if !meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionEffective) || a.Status.Progress != "2/2" {
		t.Errorf("action %+v", a.Status)
	}
	w.awaitNothingRemembered()
}

// awaitNothingRemembered waits until the host remembers nothing of actions any more.
func (w *world) awaitNothingRemembered() {
	w.t.Helper()
	w.await("nothing left to remember", func() bool {
		files, err := filepath.Glob(filepath.Join(w.dir, "data/agent/actions/*"))
		return err == nil && len(files) == 0
	})
}

// A restart is done when the new process does its part, and says what that waits for.
func TestRestart_awaits(t *testing.T) {
	w := newWorld(t, talker("one"))
	w.service.set(func(s *sleeper) { s.awaits = "it to be active: it says that it is \"booting\"" })
	w.run()
	w.awaitState("one", api.DaemonRunning)
	w.await("the first start", func() bool { return w.starts("one") == 1 })
	w.create(restartOf("one"))
	w.awaitAction(api.ActionRunning, "one runs again, as process ")
	w.await("the word what it waits for", func() bool { return strings.Contains(w.action().Status.WaitsFor, "booting") })
	w.service.set(func(s *sleeper) { s.awaits = "" })
	w.awaitAction(api.ActionDone, "one runs again, as process ")
	if n := w.starts("one"); n != 2 {
		t.Errorf("it was started %d times", n)
	}
}

func TestRestart_refused(t *testing.T) {
	for _, test := range []struct {
		name    string
		action  *api.Action
		message string
	}{
		{"no such daemon", restartOf("nine"), "daemon nine does not exist on host h1"},
		{"stopped", restartOf("stopped"), "is Stopped, not Running"},
		{"no daemon at all", restartOf("one", func(a *api.Action) { a.Spec.Target = "host/h1" }), "it must be daemon/NAME"},
		{"a kind of a newer release", restartOf("one", func(a *api.Action) { a.Spec.Kind = "daemon.polish" }), `knows no kind "daemon.polish", only host.rescan, device.wipe, device.light, daemon.restart, service.command, daemon.log: upgrade Holdfast`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, talker("one"), talker("stopped", func(d *api.Daemon) { d.Spec.State = api.WantStopped }))
			w.run()
			w.awaitState("one", api.DaemonRunning)
			w.create(test.action)
			w.awaitAction(api.ActionFailed, test.message)
			if n := w.starts("one"); n > 1 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
}

// stubborn does not end before it is killed, half a second after it was asked to.
func stubborn(d *api.Daemon) {
	d.Spec.Command = []string{"sh", "-c", "trap '' TERM; echo started; while :; do sleep 0.1; done"}
	d.Spec.StopTimeout.Duration = 500 * time.Millisecond
}

// A cancel that comes when the process was asked to end is over when another one runs: nothing else may be begun on the host before.
func TestRestart_cancelled(t *testing.T) {
	w := newWorld(t, talker("one", stubborn))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	w.await("the first start", func() bool { return w.starts("one") == 1 })
	w.create(restartOf("one"))
	w.awaitAction(api.ActionRunning, "the process is ending")
	w.await("the end that was asked for", func() bool {
		s, _ := w.runtime.State("default.one")
		return s.Stopping
	})
	w.cancelAction()
	a := w.awaitAction(api.ActionCancelled, fmt.Sprintf("cancelled; process %d could not be kept from ending: now one runs, as process ", first.Status.PID))
	if s, _ := w.runtime.State("default.one"); !s.Running || !strings.HasSuffix(a.Status.Message, fmt.Sprint(" ", s.PID)) || runtimetest.Alive(int(first.Status.PID)) {
		t.Errorf("when it is %q, the process is %+v", a.Status.Message, s)
	}
	w.awaitState("one", api.DaemonRunning)
	w.awaitNothingRemembered()
}

func (w *world) cancelAction() {
	w.t.Helper()
	w.await("the cancel", func() bool {
		a := w.action()
		a.Spec.Want = api.WantCancelled
		return w.api.Update(w.t.Context(), a) == nil
	})
}

// A cancel that comes before the process was asked to end leaves it alone.
func TestRestart_cancelledInTime(t *testing.T) {
	w := newWorld(t, talker("one"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	now := metav1.Now()
	a := restartOf("one", func(a *api.Action) {
		a.Spec.Want = api.WantCancelled
		a.Status.State, a.Status.Started = api.ActionRunning, &now
		a.Status.Steps = []api.ActionStep{{Name: "look", State: api.StepDone}, {Name: "restart", State: api.StepRunning, Started: &now}}
	})
	s, _ := w.runtime.State("default.one")
	w.remember(a.UID, processOf(s))
	w.create(a)
	w.awaitAction(api.ActionCancelled, fmt.Sprint("cancelled; its process was not asked to end: one runs, as process ", first.Status.PID))
	if !runtimetest.Alive(int(first.Status.PID)) {
		t.Error("its process has ended")
	}
	w.awaitNothingRemembered()
}

// Actions of other hosts, of the leader and of nobody's turn are left alone.
func TestActions_notMine(t *testing.T) {
	w := newWorld(t, talker("one"))
	w.run()
	w.awaitState("one", api.DaemonRunning)
	for i, change := range []func(*api.Action){
		func(a *api.Action) { a.Spec.Host = "h2" },
		func(a *api.Action) { a.Status.Executor = api.ByLeader },
		func(a *api.Action) { a.Status.State = api.ActionPendingSchedule },
	} {
		w.create(restartOf("one", change, func(a *api.Action) { a.Name = fmt.Sprint("not-mine-", i); a.UID = types.UID(a.Name) }))
	}
	w.create(restartOf("one"))
	w.awaitAction(api.ActionDone, "")
	list := &api.ActionList{}
	if err := w.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Items {
		if a.Name != "restart" && len(a.Status.Steps) > 0 {
			t.Errorf("%s was carried out: %+v", a.Name, a.Status)
		}
	}
}
