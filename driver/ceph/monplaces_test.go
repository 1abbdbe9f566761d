package ceph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/location"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// at labels host h<i> with locations, as "level=value".
func (f *fakeWorld) at(i int, locations ...string) {
	f.hosts[i-1].Labels = labelled(f.hosts[i-1].Labels, locations...)
}

func labelled(labels map[string]string, locations ...string) map[string]string {
	next := map[string]string{}
	for k, v := range labels {
		next[k] = v
	}
	for _, l := range locations {
		level, value, _ := strings.Cut(l, "=")
		next[location.Labels[level]] = value
	}
	return next
}

func TestSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		hosts []string // the locations of h1, h2 …
		taken []string
		n     int
		want  []string
	}{
		"no labels: by name":                {[]string{"", "", "", ""}, nil, 3, []string{"h1", "h2", "h3"}},
		"racks":                             {[]string{"rack=a", "rack=a", "rack=a", "rack=b", "rack=c"}, nil, 3, []string{"h1", "h4", "h5"}},
		"the zone counts before the rack":   {[]string{"zone=1 rack=a", "zone=1 rack=b", "zone=1 rack=c", "zone=2 rack=a"}, nil, 2, []string{"h1", "h4"}},
		"one zone: its racks":               {[]string{"zone=1 rack=a", "zone=1 rack=a", "zone=1 rack=b"}, nil, 2, []string{"h1", "h3"}},
		"two in three racks":                {[]string{"rack=a", "rack=a", "rack=b", "rack=b"}, nil, 3, []string{"h1", "h3", "h2"}},
		"beside those that there are":       {[]string{"rack=a", "rack=b", "rack=a", "rack=b", "rack=c"}, []string{"h1", "h2"}, 1, []string{"h5"}},
		"hosts without a label are alike":   {[]string{"rack=a", "", "", "rack=b"}, nil, 3, []string{"h1", "h2", "h4"}},
		"no more than there are":            {[]string{"", ""}, nil, 3, []string{"h1", "h2"}},
		"within the zones, racks apart":     {[]string{"zone=1 rack=a", "zone=1 rack=a", "zone=2 rack=c", "zone=1 rack=b"}, nil, 3, []string{"h1", "h3", "h4"}},
		"a host that is gone is nowhere":    {[]string{"rack=a", "rack=b"}, []string{"h9"}, 1, []string{"h1"}},
		"same rack, another zone, is apart": {[]string{"zone=1 rack=a", "zone=2 rack=a", "zone=1 rack=b"}, []string{"h1"}, 1, []string{"h2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{hosts: map[string]*api.Host{}}
			var places []place
			for i, locations := range tt.hosts {
				h := &api.Host{}
				h.Name, h.Labels = fmt.Sprint("h", i+1), labelled(nil, strings.Fields(locations)...)
				p.hosts[h.Name] = h
				if !strings.Contains(strings.Join(tt.taken, " "), h.Name) {
					places = append(places, place{host: h.Name})
				}
			}
			var got []string
			for _, at := range p.spread(places, tt.taken, tt.n) {
				got = append(got, at.host)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// fiveHosts has an OSD on each, in three racks.
func fiveHosts() *fakeWorld {
	w := newWorld(3, 1)
	for i := 1; i <= 5; i++ {
		w.host(i, 1)
		w.node(i, fmt.Sprintf("wwn-%d0", i))
	}
	f := withFake(w)
	for i, rack := range []string{"a", "a", "b", "c", "b"} {
		f.at(i+1, "rack="+rack)
	}
	return f
}

// A new cluster's mons stand in racks of their own, and one that moves goes where its rack is not taken, though another host comes
// before by name.
func TestMons_spread(t *testing.T) {
	f := fiveHosts()
	f.settle(t)
	f.checkMons(t, "a@h1", "b@h3", "c@h4")
	f.powerOff(3, time.Hour)
	f.monSteps(t)
	f.checkMons(t, "a@h1", "c@h4", "d@h5")
}

// Of more mons than are wanted one goes that has another one in its rack.
func TestMons_spreadWhenThereAreFewer(t *testing.T) {
	f := fiveHosts()
	f.cluster.Spec.Ceph.Mon.Count = 5
	f.settle(t)
	f.checkMons(t, "a@h1", "b@h2", "c@h3", "d@h4", "e@h5")
	f.cluster.Spec.Ceph.Mon.Count = 3
	f.monSteps(t)
	f.checkMons(t, "a@h1", "c@h3", "d@h4")
}

// A mon that keeps failing where it shall join is given up: the next host is tried, and that one again after a while.
func TestMonMoves_givesUp(t *testing.T) {
	f := withFake(fourHosts())
	f.host(5, 1)
	f.settle(t)
	f.node(5, "wwn-50")
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.broken["c-mon-d"], f.broken["c-mon-e"] = true, true
	if diff := cmp.Diff([]string{"new mon.d on h4"}, f.monSteps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	f.now = f.now.Add(waits.Default().MonJoin)
	if diff := cmp.Diff([]string{"mon.d leaves", "new mon.e on h5", "removed c-mon-d"}, f.monSteps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	f.now = f.now.Add(waits.Default().MonJoin)
	if diff := cmp.Diff([]string{"mon.e leaves", "removed c-mon-e"}, f.monSteps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	said := strings.Join(decisions(f.round(t)), "\n")
	for _, want := range []string{
		"no new mon on host h4 until ", "no new mon on host h5 until ",
		"mon.a: cannot replace it (out of the quorum, and the agent of host h1 disconnected",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	f.checkMons(t, "a@h1", "b@h2", "c@h3")
	f.now = f.now.Add(waits.Default().MonAvoid)
	steps := f.monSteps(t)
	if len(steps) == 0 || steps[0] != "new mon.f on h4" {
		t.Errorf("after a while: %v", steps)
	}
	f.checkMons(t, "b@h2", "c@h3", "f@h4")
	for _, d := range f.daemons {
		if text := memory.Of(d, memory.MonAvoid); text != "" && d.DeletionTimestamp == nil {
			t.Errorf("%s still has %q", d.Name, text)
		}
	}
}

// Which mons on their way in are not waited for any longer.
func TestFailing(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	now := f.now
	for _, test := range []struct {
		name   string
		age    time.Duration
		status api.DaemonStatus
		want   bool
	}{
		{"runs at the first try", time.Hour, api.DaemonStatus{State: api.DaemonRunning}, false},
		{"fails", waits.Default().MonJoin, api.DaemonStatus{State: api.DaemonFailed}, true},
		{"fails, and is young", waits.Default().MonJoin - 1, api.DaemonStatus{State: api.DaemonFailed}, false},
		{"ends again and again", waits.Default().MonJoin, api.DaemonStatus{
			State: api.DaemonRunning, Restarts: manyRestarts, Started: ptr.To(metav1.NewMicroTime(now.Add(-time.Second))),
		}, true},
		{"failed, and copies a large store now", time.Hour, api.DaemonStatus{
			State: api.DaemonRunning, Restarts: manyRestarts, Started: ptr.To(metav1.NewMicroTime(now.Add(-waits.Default().MonSteady))),
		}, false},
	} {
		p := newPlanner(f.view(), now)
		d := &api.Daemon{Spec: api.DaemonSpec{Host: "h1"}, Status: test.status}
		d.CreationTimestamp = metav1.NewTime(now.Add(-test.age))
		if got := p.failing(d); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A mon that runs for minutes and does not join says since when, what may keep it out, and what helps.
func TestMonMoves_slowToJoin(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.off["h4"] = true // nothing that runs there reaches the others
	f.powerOff(1, time.Hour)
	f.monSteps(t)
	d := f.daemons["c-mon-d"]
	if d == nil {
		t.Fatal("no mon is on its way in")
	}
	d.Status.State, d.Status.Started = api.DaemonRunning, ptr.To(metav1.NewMicroTime(f.now))
	f.now = f.now.Add(waits.Default().MonSlow - 1)
	if got := word(decisions(f.round(t), api.VerdictWait), "mon.d"); got != "being created on host h4, not in the quorum yet" {
		t.Errorf("before the time is over: %q", got)
	}
	f.now = f.now.Add(1)
	got := word(decisions(f.round(t), api.VerdictWait), "mon.d")
	for _, want := range []string{
		"running on host h4 since " + d.Status.Started.UTC().Format("15:04:05 MST"), "the connection of an earlier mon there",
		"'holdfast daemon restart mon.b --wait', then the same for mon.c, one at a time",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %q", want, got)
		}
	}
	p := newPlanner(f.view(), f.now)
	p.seen = &Observation{Quorum: []string{"a"}}
	if got := p.joiningText(d); !strings.Contains(got, "'holdfast daemon restart mon.a --force'") {
		t.Errorf("with one mon: %q", got)
	}
}

// A host whose mon cannot move for now waits to be drained, and is not refused.
func TestDrain_monCannotMoveYet(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.broken["c-mon-d"] = true
	f.mode(1, api.HostDrain)
	f.monSteps(t)
	f.now = f.now.Add(waits.Default().MonJoin)
	f.monSteps(t)
	if w := hostWord(f.round(t), "h1"); !strings.HasPrefix(w, "Wait: cannot move mon.a yet") {
		t.Errorf("%q", w)
	}
	f.checkMons(t, "a@h1", "b@h2", "c@h3")
}
