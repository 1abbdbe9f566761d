package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/agent/condition"
	stands "github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

// stands checks what tools see of a daemon whose state the agent has told: kstatus and Argo CD, and
// the reason of Ready.
func (w *world) stands(name string, want kstatus.State, reason api.Reason) {
	w.t.Helper()
	d := w.daemon(name)
	kstatus.Check(w.t, want, d)
	ready := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady)
	if ready == nil || ready.Reason != string(reason) {
		w.t.Errorf("%s is %s, want Ready by %s: %+v", name, d.Status.State, reason, d.Status.Conditions)
	}
	if ready != nil && ready.Status != metav1.ConditionTrue && ready.Message == "" {
		w.t.Errorf("%s is not ready and does not say why", name)
	}
}

// TestStanding: what the agent tells of a daemon is what tools understand that know no Daemon.
func TestStanding(t *testing.T) {
	w := newWorld(t)
	block := make(chan struct{})
	w.service.set(func(s *sleeper) { s.block = block })
	w.run()
	w.create(sleeperDaemon("one"))
	w.awaitState("one", api.DaemonPreparing)
	w.stands("one", kstatus.Reconciling, api.ReasonStarting)
	close(block)
	w.awaitState("one", api.DaemonRunning)
	w.stands("one", kstatus.Ready, api.ReasonReady)

	w.change("one", func(d *api.Daemon) {
		key := &api.SecretKey{Name: "late", Key: "k"}
		d.Spec.Files = []api.DaemonFile{{Path: "key", Sources: []api.FileSource{{Secret: key}}}}
	})
	w.awaitState("one", api.DaemonRunning)
	w.stands("one", kstatus.Reconciling, api.ReasonDaemonFailing)
	text := "a"
	if err := os.MkdirAll(filepath.Join(w.data("one"), "conf", "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.change("one", func(d *api.Daemon) {
		d.Spec.Files = []api.DaemonFile{{Path: "conf", Sources: []api.FileSource{{Text: &text}}}}
	})
	w.awaitState("one", api.DaemonRunning)
	w.stands("one", kstatus.Stalled, api.ReasonDaemonFailing)

	w.service.set(func(s *sleeper) { s.fail = errors.New("the disk is not empty: wipe it") })
	w.create(sleeperDaemon("two"))
	w.awaitState("two", api.DaemonFailed)
	w.stands("two", kstatus.Stalled, api.ReasonDaemonFailing)
	w.service.set(func(s *sleeper) { s.fail = nil })
	w.awaitState("two", api.DaemonRunning)
	w.stands("two", kstatus.Ready, api.ReasonReady)

	w.create(sleeperDaemon("ends", func(d *api.Daemon) { d.Spec.Command = []string{"false"} }))
	w.awaitState("ends", api.DaemonBackOff)
	w.stands("ends", kstatus.Reconciling, api.ReasonDaemonFailing)
	w.change("two", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	w.awaitState("two", api.DaemonStopped)
	w.stands("two", kstatus.Ready, api.ReasonReady)
	w.change("two", func(d *api.Daemon) { d.Spec.State = api.WantPrepared })
	w.awaitState("two", api.DaemonPrepared)
	w.stands("two", kstatus.Ready, api.ReasonReady)

	w.halt()
	w.change("two", func(d *api.Daemon) { d.Spec.State = api.WantRunning })
	kstatus.Check(t, kstatus.Behind, w.daemon("two"))
	w.delete("two")
	kstatus.Check(t, kstatus.Deleted, w.daemon("two"))
}

// TestStanding_served: a process that runs is not ready while its storage system gets nothing from it, by what the
// leader writes beside the agent, which leaves that alone.
func TestStanding_served(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.run()
	w.awaitState("one", api.DaemonRunning)
	said := func(s *api.DaemonService) {
		t.Helper()
		d := w.daemon("one")
		d.Status.Service = s
		if err := w.api.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(want metav1.ConditionStatus, reason api.Reason) {
		t.Helper()
		w.await("Ready by "+string(reason), func() bool {
			d := w.daemon("one")
			c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady)
			return c != nil && c.Status == want && c.Reason == string(reason) && d.Status.State == api.DaemonRunning
		})
	}
	ready(metav1.ConditionTrue, api.ReasonReady)
	out := &api.DaemonService{State: api.OutOfService, Reason: api.ReasonMarkedOut, Message: "out", Since: metav1.Now()}
	said(out)
	ready(metav1.ConditionFalse, api.ReasonMarkedOut)
	w.stands("one", kstatus.Stalled, api.ReasonMarkedOut)
	if s := w.daemon("one").Status.Service; s == nil || s.Reason != out.Reason {
		t.Errorf("the agent took back what the leader wrote: %+v", s)
	}
	said(&api.DaemonService{State: api.ServiceStandby, Reason: api.ReasonStandby, Message: "by", Since: metav1.Now()})
	ready(metav1.ConditionTrue, api.ReasonStandby)
	said(nil)
	ready(metav1.ConditionTrue, api.ReasonReady)
}

// TestStanding_states: states that need others than the agent to come about.
func TestStanding_states(t *testing.T) {
	deleted := metav1.Now()
	for _, test := range []struct {
		name    string
		wants   api.WantedState
		state   api.DaemonState
		deleted *metav1.Time
		want    stands.Standing
	}{
		{
			"watched and gone", api.WantWatched, api.DaemonStopped, nil,
			stands.Standing{Stalled: true, Reason: api.ReasonNotManaged},
		},
		{"watched", api.WantWatched, api.DaemonRunning, nil, stands.Standing{Ready: true, Reason: api.ReasonReady}},
		{"waits", api.WantRunning, api.DaemonPending, nil, stands.Standing{Reason: api.ReasonStarting}},
		{"runs, and shall not", api.WantStopped, api.DaemonRunning, nil, stands.Standing{Reason: api.ReasonStarting}},
		{"stops", api.WantStopped, api.DaemonStopping, nil, stands.Standing{Reason: api.ReasonStopping}},
		{"goes", api.WantRunning, api.DaemonStopping, &deleted, stands.Standing{Reason: api.ReasonDeleting}},
		{
			"cannot go", api.WantRunning, api.DaemonFailed, &deleted,
			stands.Standing{Stalled: true, Reason: api.ReasonDeleting},
		},
	} {
		d := &api.Daemon{Spec: api.DaemonSpec{State: test.wants}}
		d.DeletionTimestamp = test.deleted
		got := condition.Of(d, &api.DaemonStatus{State: test.state})
		if !got.Ready && got.Message == "" {
			t.Errorf("%s: it is not said why", test.name)
		}
		if got.Message = ""; got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestStanding_waits: a running daemon whose newest spec waits for what comes by itself needs
// nobody.
func TestStanding_waits(t *testing.T) {
	d := &api.Daemon{Spec: api.DaemonSpec{State: api.WantRunning}}
	s := &api.DaemonStatus{State: api.DaemonRunning, Message: "the changed spec is not in force: it waits"}
	if got := condition.Faulty(d, s, true); got.Ready || got.Stalled {
		t.Errorf("it waits: %+v", got)
	}
	if got := condition.Faulty(d, s, false); !got.Stalled {
		t.Errorf("it failed: %+v", got)
	}
}
