package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/heartbeat"
	"github.com/holdfast-storage/holdfast/test/storeworld"
)

// asked makes a host with a daemon, and returns the daemon.
func (w world) asked(t testing.TB, name string) *api.Daemon {
	t.Helper()
	must(t, w.Create(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	d := engine.DaemonFor(newCluster(name), engine.DaemonChange{Daemon: api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-d"},
		Spec:       api.DaemonSpec{Type: "d", ID: "a", Host: name, State: api.WantRunning, Command: []string{"true"}},
	}})
	must(t, w.Create(t.Context(), d))
	return d
}

func (w world) commands(t *testing.T, cluster string) []api.Action {
	t.Helper()
	var list api.ActionList
	must(t, w.List(t.Context(), &list, client.MatchingLabels{api.LabelCluster: cluster}))
	return list.Items
}

// TestAsk_leaderDies: the next leader, which comes to the same command, waits for the one that is
// under way.
func TestAsk_leaderDies(t *testing.T) {
	w := newWorld(t)
	d := w.asked(t, "ask-leader")
	cmd := engine.Command{Verb: "start", Object: "v", Daemon: d.Name}
	var carried atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	perform := func(string, engine.Command) (string, error) {
		carried.Add(1)
		close(begun)
		<-goOn
		return "it is so", nil
	}
	first := newStore(t, "s1")
	life, kill := context.WithCancel(t.Context())
	must(t, storeworld.Serve(t.Context(), first, d.Spec.Host, perform))
	ended := make(chan error, 1)
	go func() {
		_, err := first.Ask(life, d, cmd)
		ended <- err
	}()
	<-begun
	kill()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader that was killed was told %v", err)
	}
	next, err := home.NewStore(t.Context(), "s1")
	must(t, err)
	t.Cleanup(next.Close)
	answer := make(chan string, 1)
	go func() {
		message, err := next.Ask(t.Context(), d, cmd)
		answer <- fmt.Sprint(message, err)
	}()
	// It is not known when the next leader waits; that it asks twice would show in the number.
	time.AfterFunc(200*time.Millisecond, func() { close(goOn) })
	if got := <-answer; got != "it is so<nil>" || carried.Load() != 1 {
		t.Errorf("the next leader was told %s, after the command was carried out %d times", got, carried.Load())
	}
	if left := w.commands(t, "ask-leader"); len(left) != 0 {
		t.Errorf("%d commands are left: %v", len(left), left)
	}
}

// TestAsk_leftOver: an answer that a leader left behind that died before it took it says nothing of
// now.
func TestAsk_leftOver(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	d := w.asked(t, "ask-left")
	cmd := engine.Command{Verb: "start", Object: "v", Daemon: d.Name}
	old, err := engine.CommandFor(d, cmd)
	must(t, err)
	must(t, w.Create(t.Context(), old))
	old.Status = api.ActionStatus{State: api.ActionDone, Executor: api.ByAgent, Message: "old"}
	must(t, w.UpdateStatus(t.Context(), old))
	must(t, storeworld.Serve(t.Context(), s, d.Spec.Host, func(string, engine.Command) (string, error) {
		now := w.commands(t, "ask-left")
		cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Cluster}}
		cluster.Spec.Type = api.StorageCeph
		want := engine.LabelsFor(cluster, "command")
		if len(now) != 1 || !maps.Equal(now[0].Labels, want) {
			t.Errorf("the command has other labels than %v: %+v", want, now)
		}
		return "new", nil
	}))
	if message, err := s.Ask(t.Context(), d, cmd); message != "new" || err != nil {
		t.Errorf("got %q, %v", message, err)
	}
}

// TestAsk_silentAgent: a run does not wait for an agent that is silent, and the agent does not
// carry out later what may not be wanted any more.
func TestAsk_silentAgent(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	d := w.asked(t, "ask-silent")
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Host}}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Ask(t.Context(), d, engine.Command{Verb: "start", Object: "v", Daemon: d.Name})
		ended <- err
	}()
	eventually(t, "the command is asked", func() bool { return len(w.commands(t, "ask-silent")) == 1 })
	must(t, w.Get(t.Context(), host))
	host.Status.Conditions = []metav1.Condition{{
		Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: heartbeat.ReasonSilent, LastTransitionTime: metav1.Now(),
	}}
	must(t, w.UpdateStatus(t.Context(), host))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the agent of host ask-silent disconnected") {
		t.Errorf("got %v", err)
	}
	if left := w.commands(t, "ask-silent"); len(left) != 0 {
		t.Errorf("%d commands are left: %v", len(left), left)
	}
}

// TestAsk_besideADrain: a command does not wait for an action that works on the whole host, which
// may well wait for the command.
func TestAsk_besideADrain(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	d := w.asked(t, "ask-beside")
	drain := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "drain-it"},
		Spec:       api.ActionSpec{Kind: "test.drain", Target: "host/ask-beside", Host: d.Spec.Host, Want: api.WantDone},
	}
	must(t, w.Create(t.Context(), drain))
	drain.Status = api.ActionStatus{State: api.ActionRunning, Executor: api.ByAgent, Started: &metav1.Time{Time: time.Now()}}
	must(t, w.UpdateStatus(t.Context(), drain))
	must(t, storeworld.Serve(t.Context(), s, d.Spec.Host, func(string, engine.Command) (string,
		error,
	) {
		return "done", nil
	}))
	if message, err := s.Ask(t.Context(), d, engine.Command{Verb: "start", Object: "v", Daemon: d.Name}); message != "done" || err != nil {
		t.Errorf("got %q, %v", message, err)
	}
}

// BenchmarkAsk is what a command costs beside its own time, from the leader's question to the
// answer: an Action that is created, given its turn, begun, done and removed.
func BenchmarkAsk(b *testing.B) {
	w, s := newWorld(b), newStore(b, "s1")
	d := w.asked(b, "ask-bench")
	must(b, storeworld.Serve(b.Context(), s, d.Spec.Host, func(string, engine.Command) (string,
		error,
	) {
		return "done", nil
	}))
	defer func() {
		must(b, w.Delete(b.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Host}}))
		must(b, w.Delete(b.Context(), d))
	}()
	for b.Loop() {
		_, err := s.Ask(b.Context(), d, engine.Command{Verb: "start", Object: "v", Daemon: d.Name})
		must(b, err)
	}
}
