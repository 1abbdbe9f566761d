package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Perform implements service.Performer.
func (s *sleeper) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	s.mu.Lock()
	perform := s.perform
	s.mu.Unlock()
	return perform(ctx, l, cmd)
}

// mute is a type of daemons that knows no commands and tells no reports.
type mute struct{ service.ServiceAgent }

func (mute) Name() string { return "mute" }

// commandTo is a command that has its turn.
func commandTo(t *testing.T, name, daemon string) *api.Action {
	t.Helper()
	a, err := action.CommandAction(name, "c", "h1", action.Command{
		Namespace: "default", Daemon: daemon, Verb: "volume start", Object: "volume/v1", Params: map[string]string{"force": "yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.UID, a.Status = types.UID("uid-"+name), api.ActionStatus{State: api.ActionNew, Executor: api.ByAgent}
	return a
}

func (w *world) awaitEnd(name string) *api.Action {
	w.t.Helper()
	a := &api.Action{}
	w.await("the end of "+name, func() bool {
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, a); err != nil {
			w.t.Fatal(err)
		}
		return a.Status.State.Final()
	})
	return a
}

// A command reaches the service agent as it was asked, with the daemon's place on this host, and what it says comes back.
func TestCommand(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) { d.Spec.Parameters = map[string]string{"p": "${RUN}/x"} }))
	w.service.perform = func(_ context.Context, l *service.Local, cmd service.Command) (string, error) {
		if cmd.Verb != "volume start" || cmd.Object != "volume/v1" || !maps.Equal(cmd.Params, map[string]string{"force": "yes"}) {
			return "", fmt.Errorf("asked for %+v", cmd)
		}
		return fmt.Sprintf("%s has %s", l.Daemon.Name, strings.TrimPrefix(l.Parameters["p"], w.dir)), nil
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	w.create(commandTo(t, "a", "one"))
	if a := w.awaitEnd("a"); a.Status.State != api.ActionDone || a.Status.Message != "one has /run/default.one/x" {
		t.Errorf("status %+v", a.Status)
	}
}

// A command that names a Secret brings what it holds.
func TestCommand_secret(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.service.perform = func(_ context.Context, _ *service.Local, cmd service.Command) (string, error) {
		return "the key is " + string(cmd.Secret["key"]), nil
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	a, err := action.CommandAction("a", "c", "h1", action.Command{Namespace: "default", Daemon: "one", Verb: "set", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	a.UID, a.Status = "uid-a", api.ActionStatus{State: api.ActionNew, Executor: api.ByAgent}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"key": []byte("k")}})
	w.create(a)
	if a := w.awaitEnd("a"); a.Status.State != api.ActionDone || a.Status.Message != "the key is k" {
		t.Errorf("status %+v", a.Status)
	}
}

func TestCommand_refused(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"), sleeperDaemon("two", func(d *api.Daemon) { d.Spec.Type = "mute" }),
		sleeperDaemon("three", func(d *api.Daemon) { d.Spec.Type = "of a newer release" }))
	w.service.perform = func(context.Context, *service.Local, service.Command) (string, error) {
		return "", errors.New("volume v1: the quorum is not met: start the other nodes first")
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	for daemon, want := range map[string]string{
		"one":   "on host h1: volume v1: the quorum is not met: start the other nodes first",
		"two":   `knows no commands for daemons of type "mute": upgrade Holdfast`,
		"three": `does not know daemons of type "of a newer release": upgrade Holdfast`,
		"nine":  "daemon nine does not exist on host h1",
	} {
		w.create(commandTo(t, "ask-"+daemon, daemon))
		a := w.awaitEnd("ask-" + daemon)
		_, err := action.CommandResult(a)
		if a.Status.State != api.ActionFailed || err == nil || !strings.HasSuffix(err.Error(), want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %s", daemon, a.Status.State, err, want)
		}
	}
}

// Commands of one daemon are carried out one at a time, and those of another beside them.
func TestCommand_oneAtATime(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"), sleeperDaemon("two"))
	var busy, most atomic.Int32
	twoDone, goOn := make(chan struct{}), make(chan struct{})
	w.service.perform = func(_ context.Context, l *service.Local, _ service.Command) (string, error) {
		if l.Daemon.Name == "two" {
			close(twoDone)
			return "", nil
		}
		most.Store(max(most.Load(), busy.Add(1)))
		<-goOn
		busy.Add(-1)
		return "", nil
	}
	w.run()
	w.awaitState("one", api.DaemonRunning)
	w.awaitState("two", api.DaemonRunning)
	for i := range 3 {
		w.create(commandTo(t, fmt.Sprint("to-one-", i), "one"))
	}
	w.create(commandTo(t, "to-two", "two"))
	select {
	case <-twoDone:
	case <-time.After(deadline):
		t.Fatal("a command waits for that of another daemon")
	}
	close(goOn)
	for i := range 3 {
		w.awaitEnd(fmt.Sprint("to-one-", i))
	}
	if most.Load() != 1 {
		t.Errorf("%d commands of one daemon were carried out at one time", most.Load())
	}
}
