package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

var toyKey = types.NamespacedName{Namespace: "default", Name: "t"}

// lab is a world with a cluster "t" on hosts h1, h2 and h3, not yet orchestrated.
type lab struct {
	*sim.World
	t    *testing.T
	toy  *sim.Toy
	orch *engine.Orchestrator
}

func newLab(t *testing.T) *lab {
	t.Helper()
	toy := sim.NewToy()
	w := sim.NewWorld(toy)
	l := &lab{World: w, t: t, toy: toy, orch: &engine.Orchestrator{
		Store: w.Memory, Driver: toy, Leader: "s1", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
	l.must(w.Create(t.Context(), toyCluster("t")))
	for _, n := range []string{"1", "2", "3"} {
		l.must(w.AddHost(t.Context(), "h"+n, []string{"disk-" + n}))
		l.must(w.Create(t.Context(), toyNode("n"+n, "h"+n, "/dev/sdb")))
	}
	return l
}

func toyCluster(name string) *api.StorageCluster {
	return &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.StorageClusterSpec{
			Type: sim.ToyType, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain,
		},
	}
}

func toyNode(name, host string, devices ...string) *api.StorageNode {
	return &api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.StorageNodeSpec{
			Type: sim.ToyType, NodeSelector: map[string]string{api.LabelHostname: host}, Devices: devices,
		},
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) refresh() (*engine.RefreshEvent, error) {
	e := &engine.RefreshEvent{Cluster: toyKey, Reason: "test"}
	return e, l.orch.HandleRefresh(l.t.Context(), e)
}

// becomesReady fails the test unless the cluster becomes ready.
func (l *lab) becomesReady() {
	l.t.Helper()
	l.settle()
	if c := l.ready(); c.Status != metav1.ConditionTrue {
		l.t.Errorf("Ready = %+v", c)
	}
}

// addFourth declares a node on a fourth host.
func (l *lab) addFourth() {
	l.t.Helper()
	l.must(l.AddHost(l.t.Context(), "h4", []string{"disk-4"}))
	l.must(l.Create(l.t.Context(), toyNode("n4", "h4", "/dev/sdb")))
}

// settle runs orchestrations and ticks until the cluster is ready.
func (l *lab) settle() {
	l.t.Helper()
	for range 20 {
		e, err := l.refresh()
		l.must(err)
		if !e.Changed && l.cluster().Status.Report.Outcome == api.OutcomeUnchanged {
			return
		}
		l.must(l.Tick(l.t.Context()))
	}
	l.t.Fatalf("not ready after 20 rounds: %+v", l.cluster().Status)
}

func (l *lab) cluster() *api.StorageCluster {
	l.t.Helper()
	c, err := l.Cluster(context.Background(), toyKey)
	l.must(err)
	return c
}

func (l *lab) events() []string {
	l.t.Helper()
	events, err := l.Events(context.Background(), toyKey)
	l.must(err)
	lines := make([]string, len(events))
	for i, e := range events {
		if e.Sequence != int64(i)+1 {
			l.t.Errorf("event %d has sequence %d", i+1, e.Sequence)
		}
		lines[i] = e.Code + " " + e.Object
	}
	return lines
}

func (l *lab) ready() metav1.Condition {
	for _, c := range l.cluster().Status.Conditions {
		if c.Type == api.ClusterReady {
			return c
		}
	}
	return metav1.Condition{}
}

func TestOrchestrator_bringUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.becomesReady()
		report := l.cluster().Status.Report
		if report.Leader != "s1" || report.Started.IsZero() {
			t.Errorf("report = %+v", report)
		}
		counts := map[string]int{}
		for _, line := range l.events() {
			counts[line]++
		}
		for _, once := range []string{
			"CLUSTER_NEW cluster/t", "CLUSTER_OFFLINE cluster/t", "CLUSTER_ONLINE cluster/t", "NODE_NEW node/n1",
			"DAEMON_NEW daemon/t-toy-n1", "DAEMON_RUNNING daemon/t-toy-n2", "DAEMON_CHANGED daemon/t-toy-n3",
		} {
			if counts[once] != 1 {
				t.Errorf("event %q was told %d times, want once", once, counts[once])
			}
		}
	})
}

func TestOrchestrator_againChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		before := l.Writes()
		for range 5 {
			time.Sleep(time.Minute)
			e, err := l.refresh()
			l.must(err)
			if e.Changed {
				t.Error("a run without a difference says that it changed something")
			}
		}
		if n := l.Writes() - before; n != 0 {
			t.Errorf("%d writes, want none", n)
		}
		// A new leader remembers nothing, and must tell of nothing twice; it tells that it leads.
		events := l.events()
		l.orch = &engine.Orchestrator{Store: l.Memory, Driver: l.toy, Leader: "s2", Log: l.orch.Log}
		_, err := l.refresh()
		l.must(err)
		if diff := cmp.Diff(append(events, "LEADER_CHANGED leader/s2"), l.events()); diff != "" || l.Writes() != before+2 {
			t.Errorf("a new leader wrote %d times, want the event and the record; events:\n%s", l.Writes()-before, diff)
		}
	})
}

func TestOrchestrator_failedHostHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.must(l.FailHost(t.Context(), "h2"))
		l.must(l.AddHost(t.Context(), "h4", []string{"disk-4"}))
		l.must(l.Create(t.Context(), toyNode("n4", "h4", "disk-4")))
		for range 8 {
			_, err := l.refresh()
			l.must(err)
			l.must(l.Tick(t.Context()))
		}
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t-toy-n4"}}
		l.must(l.Get(t.Context(), d))
		if d.Status.State != api.DaemonRunning {
			t.Errorf("the daemon on the new host is %s", d.Status.State)
		}
		if log := strings.Join(l.events(), "\n"); strings.Count(log, "AGENT_DOWN host/h2") != 1 || !strings.Contains(log, "CLUSTER_DEGRADED") {
			t.Errorf("events:\n%s", log)
		}
	})
}

func TestOrchestrator_silentSystemIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.toy.Silence(true)
		_, err := l.refresh()
		l.must(err)
		report := l.cluster().Status.Report
		if report.Outcome != api.OutcomeChanged || report.Decisions[0].Message != "observing toy failed: no answer" {
			t.Errorf("report = %+v", report)
		}
	})
}

func TestOrchestrator_failedRunLeavesReport(t *testing.T) {
	tests := []struct {
		name  string
		fail  func(operation, object string) error
		hook  func(*engine.Plan)
		wants string
	}{
		{
			name: "no view", wants: "while reading cluster default/t: no luck",
			fail: func(op, _ string) error { return failOn(op, "View") },
		},
		{
			name: "one daemon", wants: "while writing daemon t-toy-n2: no luck",
			fail: func(op, object string) error { return failOn(op+" "+object, "PutDaemon t-toy-n2") },
		},
		{
			name: "a secret", wants: "while making secret t-key: no luck",
			fail: func(op, _ string) error { return failOn(op, "MakeSecret") },
		},
		{
			name: "fault in the driver", wants: "planning failed: fault in the toy driver (see the log): boom",
			hook: func(*engine.Plan) { panic("boom") },
		},
		{
			name: "no such daemon", wants: `while running "dance" for toy: daemon t-toy-n9, which must carry it out, does not exist`,
			hook: func(p *engine.Plan) {
				p.Commands = []engine.Command{{Verb: "dance", Object: "toy", Daemon: "t-toy-n9"}}
			},
		},
		{
			name: "unknown command", wants: `while running "dance" for toy: unknown command "dance"`,
			hook: func(p *engine.Plan) { p.Commands = []engine.Command{{Verb: "dance", Object: "toy"}} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.Fail, l.toy.PlanHook = tt.fail, tt.hook
				if _, err := l.refresh(); err == nil || !strings.Contains(err.Error(), tt.wants) {
					t.Errorf("error = %v, want %q", err, tt.wants)
				}
				report := l.cluster().Status.Report
				if report == nil || report.Outcome != api.OutcomeFailed || !strings.Contains(report.Error, tt.wants) {
					t.Fatalf("report = %+v, want %q", report, tt.wants)
				}
				if c := l.ready(); c.Status != metav1.ConditionUnknown {
					t.Errorf("Ready = %+v", c)
				}
				// The fault over, it goes on, and nothing is told twice.
				l.Fail, l.toy.PlanHook = nil, nil
				l.settle()
				if n := strings.Count(strings.Join(l.events(), "\n"), "CLUSTER_NEW"); n != 1 {
					t.Errorf("CLUSTER_NEW was told %d times", n)
				}
			})
		})
	}
}

func failOn(what, match string) error {
	if what == match {
		return errors.New("no luck")
	}
	return nil
}

func TestOrchestrator_oneUnwritableDaemonHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Fail = func(op, object string) error { return failOn(op+" "+object, "PutDaemon t-toy-n1") }
		if _, err := l.refresh(); err == nil {
			t.Fatal("no error")
		}
		for _, n := range []string{"n2", "n3"} {
			l.must(l.Get(t.Context(), &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t-toy-" + n}}))
		}
	})
}

func TestOrchestrator_unsentEventsAreSentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		sent := 0
		l.Fail = func(op, _ string) error {
			if op != "Emit" {
				return nil
			}
			if sent++; sent > 2 {
				return errors.New("no luck")
			}
			return nil
		}
		if _, err := l.refresh(); err == nil || !strings.Contains(err.Error(), "while writing events: no luck") {
			t.Errorf("error = %v", err)
		}
		l.Fail = nil
		l.settle()
		seen := map[string]int{}
		for _, line := range l.events() {
			seen[line]++
		}
		for _, line := range []string{"CLUSTER_NEW cluster/t", "NODE_NEW node/n1", "NODE_NEW node/n2", "NODE_NEW node/n3"} {
			if seen[line] != 1 {
				t.Errorf("event %q was told %d times, want once", line, seen[line])
			}
		}
	})
}

func TestOrchestrator_lock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.Hold(toyKey, "s2")
		_, err := l.refresh()
		if !errors.Is(err, engine.ErrLocked) || !strings.Contains(fmt.Sprint(err), "s2") {
			t.Errorf("error = %v, want one that says who holds the lock", err)
		}
		if r := l.cluster().Status.Report; r != nil {
			t.Errorf("a discarded run left a report: %+v", r)
		}
		// A lock lost in the middle of a run ends the run, and nothing more is written.
		l.Hold(toyKey, "")
		l.toy.PlanHook = func(*engine.Plan) { l.Hold(toyKey, "s2") }
		if _, err := l.refresh(); !errors.Is(err, engine.ErrLocked) {
			t.Errorf("error = %v", err)
		}
		v, err := l.View(t.Context(), toyKey)
		l.must(err)
		if v.Cluster.Status.Report != nil || v.Status != nil || len(v.Daemons)+len(v.Secrets) > 0 {
			t.Errorf("a run that lost its lock went on to write: %+v", v)
		}
	})
}

func TestOrchestrator_refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.toy.PlanHook = func(p *engine.Plan) {
			p.Refused = true
			p.Decisions = []api.Decision{{Object: "cluster/t", Verdict: api.VerdictRefuse, Message: "five mons need five hosts."}}
		}
		_, err := l.refresh()
		l.must(err)
		c := l.cluster()
		if c.Status.Report.Outcome != api.OutcomeRefused {
			t.Errorf("outcome = %s", c.Status.Report.Outcome)
		}
		if got := l.ready(); got.Reason != engine.ReasonRefused || got.Message != "cluster/t: five mons need five hosts" {
			t.Errorf("Ready = %+v", got)
		}
		v, err := l.View(t.Context(), toyKey)
		l.must(err)
		if len(v.Daemons)+len(v.Secrets) > 0 {
			t.Error("a refused plan was carried out")
		}
	})
}

func TestOrchestrator_deletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.must(l.Delete(t.Context(), toyCluster("t")))
		var err error
		for range 10 {
			if _, err = l.refresh(); err != nil {
				break
			}
			l.must(l.Tick(t.Context()))
		}
		if !errors.Is(err, engine.ErrNotFound) {
			t.Fatalf("error = %v, want one that says that the cluster is gone", err)
		}
		if _, err := l.View(t.Context(), toyKey); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("View: %v", err)
		}
		if _, _, forgotten := l.toy.Counts(); forgotten != 1 {
			t.Errorf("the driver was told to forget %d times", forgotten)
		}
		if _, err := l.Secrets(toyKey).Secret(t.Context(), "t-key"); err != nil {
			t.Errorf("under Retain the key stays: %v", err)
		}
		if e := l.events(); len(e) > 0 {
			t.Errorf("events are left: %q", e)
		}
	})
}

// TestOrchestrator_readyIsTakenBackFirst: at no moment does a node that was added count as looked at while the word that the
// cluster is ready is still that of the run before.
func TestOrchestrator_readyIsTakenBackFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.addFourth()
		asked := false
		l.Fail = func(op, object string) error {
			if op == "PutNodeStatus" && object == "n4" {
				asked = true
				if c := l.ready(); c.Status == metav1.ConditionTrue {
					t.Errorf("the node is looked at, and the cluster still Ready: %+v", c)
				}
			}
			return nil
		}
		_, err := l.refresh()
		l.must(err)
		if !asked {
			t.Error("the node's status was not written")
		}
		l.becomesReady()
	})
}

// TestOrchestrator_refusalIsTakenBackFirst: at no moment does a node that was mended count as looked at while the word that the cluster
// is refused is still that of the run before.
func TestOrchestrator_refusalIsTakenBackFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		wrong := toyNode("n4", "h4", "/dev/sdz")
		l.must(l.AddHost(t.Context(), "h4", []string{"disk-4"}))
		l.must(l.Create(t.Context(), wrong))
		_, err := l.refresh()
		l.must(err)
		stalled := func() *metav1.Condition {
			return meta.FindStatusCondition(l.cluster().Status.Conditions, api.ConditionStalled)
		}
		if c := stalled(); c == nil || c.Status != metav1.ConditionTrue {
			t.Fatalf("Stalled = %+v", c)
		}
		if !meta.IsStatusConditionTrue(l.cluster().Status.Conditions, api.ClusterAccepted) {
			t.Error("the fault of a node is told as one of the cluster's spec")
		}
		l.must(l.Get(t.Context(), wrong))
		wrong.Spec.Devices = []string{"/dev/sdb"}
		l.must(l.Update(t.Context(), wrong))
		asked := false
		l.Fail = func(op, object string) error {
			if op == "PutNodeStatus" && object == "n4" {
				asked = true
				if c := stalled(); c != nil && c.Status == metav1.ConditionTrue {
					t.Errorf("the node is looked at, and the cluster still refused: %+v", c)
				}
			}
			return nil
		}
		_, err = l.refresh()
		l.must(err)
		if !asked {
			t.Error("the node's status was not written")
		}
	})
}

// TestOrchestrator_stalledIsTakenBackFirst: at no moment is a new node looked at while another one, which was mended with it, is still
// called stalled for what was wrong before.
func TestOrchestrator_stalledIsTakenBackFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		wrong := toyNode("n4", "h4", "/dev/sdz")
		l.must(l.AddHost(t.Context(), "h4", []string{"disk-4"}))
		l.must(l.AddHost(t.Context(), "h5", []string{"disk-5"}))
		l.must(l.Create(t.Context(), wrong))
		_, err := l.refresh()
		l.must(err)
		stalled := func() bool {
			l.must(l.Get(t.Context(), wrong))
			return meta.IsStatusConditionTrue(wrong.Status.Conditions, api.ConditionStalled)
		}
		if !stalled() {
			t.Fatalf("it is not stalled: %+v", wrong.Status)
		}
		wrong.Spec.Devices = []string{"/dev/sdb"}
		l.must(l.Update(t.Context(), wrong))
		l.must(l.Create(t.Context(), toyNode("n5", "h5", "/dev/sdb")))
		asked := false
		l.Fail = func(op, object string) error {
			if op == "PutNodeStatus" && object == "n5" {
				if asked = true; stalled() {
					t.Error("the new node is looked at, and the other one still stalled")
				}
			}
			return nil
		}
		_, err = l.refresh()
		l.must(err)
		if !asked || stalled() {
			t.Errorf("asked: %v, stalled: %v", asked, stalled())
		}
	})
}

// TestOrchestrator_overtaken: a run during which a node changes makes nothing of the node, says so, and is no failure.
func TestOrchestrator_overtaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.addFourth()
		l.Fail = func(op, object string) error {
			switch {
			case op == "PutNodeStatus" && object == "n4":
				return fmt.Errorf("node n4: %w", engine.ErrStale)
			case op == "PutDaemon":
				return errors.New("a daemon is made of what is not so any more")
			}
			return nil
		}
		_, err := l.refresh()
		l.must(err)
		said := l.cluster().Status.Report.Decisions
		if !slices.ContainsFunc(said, func(d api.Decision) bool { return d.Object == "node/n4" && d.Verdict == api.VerdictWait }) {
			t.Errorf("it does not say that it was overtaken: %+v", said)
		}
		l.Fail = nil
		l.becomesReady()
	})
}

// TestOrchestrator_daemonGone: that a daemon is gone which a run wanted to change is said, and is no failure; it is looked at again.
func TestOrchestrator_daemonGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		l.addFourth()
		l.Fail = func(op, object string) error {
			if op == "PutDaemon" && object == "t-toy-n4" {
				return fmt.Errorf("daemon %s is gone: %w", object, engine.ErrStale)
			}
			return nil
		}
		_, err := l.refresh()
		l.must(err)
		said := l.cluster().Status.Report.Decisions
		if !slices.ContainsFunc(said, func(d api.Decision) bool { return d.Object == "daemon/t-toy-n4" && d.Verdict == api.VerdictWait }) {
			t.Errorf("it does not say that the daemon was gone: %+v", said)
		}
		l.Fail = nil
		l.becomesReady()
	})
}

// TestOrchestrator_volumesOfNobody: a driver that has no volumes keeps none from being deleted, and whoever declares one is told.
func TestOrchestrator_volumesOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.toy.PlanHook = func(p *engine.Plan) { p.Resources, p.Commands = nil, nil }
		v := volumeOf("v")
		l.must(l.Create(t.Context(), v))
		_, err := l.refresh()
		l.must(err)
		want := api.Decision{Object: "volume/v", Verdict: api.VerdictRefuse, Reason: api.ReasonUnsupported, Message: "ignored: clusters of type toy do not support volumes"}
		if got := l.cluster().Status.Report.Decisions; !slices.Contains(got, want) {
			t.Errorf("decisions = %+v", got)
		}
		l.must(l.Get(t.Context(), v))
		if len(v.Finalizers) > 0 || v.Status.State != "" || v.Status.Message != want.Message || v.Status.ObservedGeneration != v.Generation {
			t.Errorf("status %+v, kept by %v", v.Status, v.Finalizers)
		}
	})
}
