package ceph

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// rounds runs some at one moment, and returns the last plan. It takes some until Ceph's own reports are as things are.
func (f *fakeWorld) rounds(t *testing.T) (p *engine.Plan) {
	t.Helper()
	for range 12 {
		f.agents()
		p = f.round(t)
	}
	return p
}

func (f *fakeWorld) returned(i int, since time.Duration) {
	f.hosts[i-1].Status.Conditions = []metav1.Condition{{
		Type: api.HostAgentConnected, Status: metav1.ConditionTrue, Message: api.HostAgentReturned,
		LastTransitionTime: metav1.NewTime(f.now.Add(-since)),
	}}
}

// TestWaits_replica: a mgr gets another one in its place when its host is silent for as long as is set, and one is too many when the host
// is heard for that.
func TestWaits_replica(t *testing.T) {
	for name, set := range map[string]waits.Waits{"by default": {}, "set lower": {ReplicaLost: 5 * time.Second, ReplicaSteady: 7 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			f, w := withFake(fourHosts()), set.OrDefault()
			f.driver.Waits = set
			f.settle(t)
			i := 1 + slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == f.daemons["c-mgr-a"].Spec.Host })
			f.powerOff(i, w.ReplicaLost-time.Second)
			p := f.rounds(t)
			if said := word(decisions(p), "mgr.a"); len(mgrsOf(f)) != 2 || !strings.Contains(said, "for less than "+w.ReplicaLost.String()) {
				t.Fatalf("just lost: %v, %q", mgrsOf(f), said)
			}
			f.powerOff(i, w.ReplicaLost)
			f.rounds(t)
			if len(mgrsOf(f)) != 3 {
				t.Fatalf("lost: %v", mgrsOf(f))
			}
			f.powerOn(i)
			f.returned(i, w.ReplicaSteady-time.Second)
			p = f.rounds(t)
			if said := word(decisions(p), "mgrs"); len(mgrsOf(f)) != 3 || !strings.Contains(said, "has been connected for "+w.ReplicaSteady.String()) {
				t.Fatalf("just back: %v, %q", mgrsOf(f), said)
			}
			f.returned(i, w.ReplicaSteady)
			f.rounds(t)
			if len(mgrsOf(f)) != 2 {
				t.Errorf("back: %v", mgrsOf(f))
			}
		})
	}
}

func mgrsOf(f *fakeWorld) (names []string) {
	for name, d := range f.daemons {
		if d.Spec.Type == TypeMgr {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestWaits_nodeGone: nothing leaves a host without a StorageNode before that has been so for as long as is set.
func TestWaits_nodeGone(t *testing.T) {
	for name, set := range map[string]waits.Waits{"by default": {}, "set lower": {NodeGone: 4 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			f, gone := withFake(twoDisks()), set.OrDefault().NodeGone
			f.driver.Waits = set
			f.settle(t)
			f.nodes = f.nodes[:3]
			f.rounds(t)
			f.now = f.now.Add(gone - time.Second)
			p := f.rounds(t)
			if said := word(decisions(p, api.VerdictWait), "osd.6"); !strings.Contains(said, "its daemons stay for "+gone.String()) || drains(f.daemons["c-osd-6"]) {
				t.Errorf("too soon: %q", said)
			}
			f.now = f.now.Add(time.Second)
			f.rounds(t)
			if d := f.daemons["c-osd-6"]; d != nil && !drains(d) {
				t.Error("it does not leave")
			}
		})
	}
}

// TestWaits_daemonFresh: a mon that does not answer hangs when it runs for as long as is set.
func TestWaits_daemonFresh(t *testing.T) {
	for name, set := range map[string]waits.Waits{"by default": {}, "set lower": {DaemonFresh: 6 * time.Second}} {
		f, fresh := withFake(threeHosts()), set.OrDefault().DaemonFresh
		f.driver.Waits = set
		f.settle(t)
		v, _, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.System = &Observation{Error: "no answer", Mute: []string{"b"}}
		started := metav1.NewMicroTime(f.now)
		v.DaemonsByName()["c-mon-b"].Status.Started = &started
		for after, want := range map[time.Duration]string{fresh - 1: "it has just started", fresh: "no mon answers, although their processes run"} {
			if said := word(decisions(f.planAt(v, f.now.Add(after))), "mon.b"); !strings.Contains(said, want) {
				t.Errorf("%s, after %s: %q, want %q", name, after, said, want)
			}
		}
	}
}

// TestWaits_monJoin: a new mon that fails is given up when it has not joined within what is set.
func TestWaits_monJoin(t *testing.T) {
	for name, set := range map[string]waits.Waits{"by default": {}, "set lower": {MonJoin: 8 * time.Second}} {
		f, join := withFake(threeHosts()), set.OrDefault().MonJoin
		f.driver.Waits = set
		p := f.driver.newPlanner(f.view(), testTime)
		d := &api.Daemon{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(testTime.Add(-join))},
			Spec:       api.DaemonSpec{Host: "h1"}, Status: api.DaemonStatus{State: api.DaemonFailed},
		}
		if !p.failing(d) {
			t.Errorf("%s: it is waited for", name)
		}
		d.CreationTimestamp = metav1.NewTime(testTime.Add(-join + time.Second))
		if p.failing(d) {
			t.Errorf("%s: it is given up too soon", name)
		}
	}
}
