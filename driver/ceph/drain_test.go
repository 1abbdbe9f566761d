package ceph

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// fourHosts has mons on the first three hosts, and OSDs on all.
func fourHosts() *world {
	w := threeHosts()
	w.host(4, 1)
	w.node(4, "wwn-40")
	return w
}

// A host is drained step by step, and nothing of it is left in Ceph. Its disk stays as it is, unless the policy says otherwise.
func TestDrain(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		t.Run(string(policy), func(t *testing.T) {
			f := withFake(fourHosts())
			f.cluster.Spec.DeletionPolicy = policy
			f.settle(t)
			on := f.daemons["c-mgr-a"].Spec.Host // the host without a mon
			f.mode(4, api.HostDrain)
			want := []string{
				"mgr fail mgr.a", "auth import mgr.c", "Running mgr.c", "auth rm mgr.a", "Running osd.3", "osd crush reweight osd.3", "osd out osd.3", "Stopped osd.3", "osd purge osd.3", "osd crush rm h4",
			}
			steps := f.steps(t)
			if diff := cmp.Diff(want, slices.Compact(steps)); diff != "" || on != "h4" {
				t.Fatalf("mgr.a on %s (-want +got):\n%s", on, diff)
			}
			p := f.settle(t)
			if hostWord(p, "h4") != "" || len(f.states("h4")) != 0 || !p.Done {
				t.Errorf("%q, daemons %v, %v", hostWord(p, "h4"), f.states("h4"), p.Status.Reasons)
			}
			if slices.Contains(f.ceph.Buckets(), "h4") || len(f.ceph.OSDs()) != 3 {
				t.Errorf("buckets %v, OSDs %v", f.ceph.Buckets(), f.ceph.OSDs())
			}
			if free := f.device("wwn-40").Availability == api.DeviceAvailable; free != (policy == api.DeletionWipe) {
				t.Errorf("the device is free: %v", free)
			}
			// Given back, the host gets an OSD again.
			f.mode(4, api.HostActive)
			if p = f.settle(t); !p.Done || len(f.states("h4")) != 1 {
				t.Errorf("daemons %v, %v", f.states("h4"), p.Status.Reasons)
			}
		})
	}
}

// As long as Ceph would miss an OSD it runs on; and whoever thinks better of it has it back as it was.
func TestDrain_waitsForData(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.ceph.Stick(3, true)
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if w := hostWord(p, "h4"); w != "Wait: data moves from osd.3 to other hosts" || f.daemons["c-osd-3"].Spec.State != api.WantRunning {
		t.Fatalf("%q, %v", w, f.states("h4"))
	}
	if f.ceph.Weight(3) != 0 {
		t.Errorf("it has weight %v", f.ceph.Weight(3))
	}
	f.mode(4, api.HostActive)
	steps := f.steps(t)
	if p = f.settle(t); !p.Done || !slices.Equal(steps, []string{"osd crush reweight osd.3", "Running osd.3"}) || drains(f.daemons["c-osd-3"]) || f.ceph.Weight(3) != f.ceph.Weight(0) {
		t.Errorf("%v, %v, %v", p.Status.Reasons, steps, f.ceph.Weight(3))
	}
}

// Whoever thinks better of it has an OSD back as it was, however far it was: with the weight that it had, to the last digit, and out if it was
// out. A weight that somebody has given it meanwhile stays.
func TestDrain_takenBack(t *testing.T) {
	const odd = 1.5 + 1.0/65536
	for name, tt := range map[string]struct {
		before, meanwhile func(*fakeWorld)
		want              float64
		wantOut           bool
	}{
		"its own weight":           {func(f *fakeWorld) { f.ask(t, "osd crush reweight", "name", "osd.3", "weight", odd) }, nil, odd, false},
		"out by hand":              {func(f *fakeWorld) { f.ask(t, "osd out", "ids", []string{"3"}) }, nil, 255.0 / 65536, true},
		"no weight by hand":        {func(f *fakeWorld) { f.ask(t, "osd crush reweight", "name", "osd.3", "weight", 0.0) }, nil, 0, false},
		"another weight meanwhile": {nil, func(f *fakeWorld) { f.ask(t, "osd crush reweight", "name", "osd.3", "weight", 0.25) }, 0.25, false},
	} {
		for _, until := range []string{"noted", "weightless", "stopped"} {
			t.Run(name+"/"+until, func(t *testing.T) {
				f := withFake(fourHosts())
				f.cluster.Spec.Ceph.Mgr.Count = 1
				f.settle(t)
				if tt.before != nil {
					tt.before(f)
				}
				f.settle(t)
				f.mode(4, api.HostDrain)
				f.until(t, "it is "+until, func() bool {
					d := f.daemons["c-osd-3"]
					return map[string]bool{
						"noted": drains(d), "weightless": drains(d) && f.ceph.Weight(3) == 0, "stopped": d.Status.State == api.DaemonStopped,
					}[until]
				})
				if tt.meanwhile != nil {
					tt.meanwhile(f)
				}
				f.mode(4, api.HostActive)
				p := f.settle(t)
				out := contains(p.Status.Reasons, "osd.3 on h4 is out")
				d := f.daemons["c-osd-3"]
				noted := drains(d) || memory.Of(d, memory.CrushWeight) != ""
				if noted || told(d) || f.ceph.Weight(3) != tt.want || out != tt.wantOut {
					t.Errorf("weight %v, out %v, %v", f.ceph.Weight(3), out, decisions(p))
				}
			})
		}
	}
}

// ask has an administrator ask something of the mons: its parameters follow.
func (f *fakeWorld) ask(t *testing.T, prefix string, params ...any) {
	t.Helper()
	cmd := command{"prefix": prefix}
	for i := 0; i < len(params); i += 2 {
		if w, ok := params[i+1].(float64); ok {
			params[i+1] = json.RawMessage(weightText(w))
		}
		cmd[params[i].(string)] = params[i+1]
	}
	if _, err := f.ceph.Dial(rados.Config{}).Mon(t.Context(), cmd, nil); err != nil {
		t.Fatal(err)
	}
}

// An administrator's own 'osd out' is left alone.
func TestDrain_outByHandStaysOut(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.ask(t, "osd out", "ids", []string{"3"})
	p := f.settle(t)
	if !contains(p.Status.Reasons, "osd.3 on h4 is out") || !p.Empty() {
		t.Errorf("%v", p.Status.Reasons)
	}
}

func TestDrain_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		world  func() *world
		host   int
		setup  func(*fakeWorld)
		reason api.Reason
		want   string
	}{
		"a mon": {
			threeHosts, 1, nil, api.ReasonNoOtherHost,
			"cannot drain: no other host may run mon.a (spec.ceph.mon.count is 3, one mon per host); add a host or lower the count",
		},
		"too few hosts": {
			func() *world {
				w := threeHosts()
				w.cluster.Spec.Ceph.Mon.Count = 1
				return w
			}, 3, nil, api.ReasonInsufficientNodes,
			"pool device_health_metrics keeps 3 copies, one per host, but 2 hosts would be left",
		},
		"the last host of a rack": {
			fourHosts, 4, func(f *fakeWorld) {
				f.ceph.SpreadOver(map[string]string{"h1": "r1", "h2": "r2", "h3": "r1", "h4": "r3"})
			}, api.ReasonInsufficientNodes,
			"pool device_health_metrics keeps 3 copies, one per rack, " +
				"but 2 racks would be left; add one",
		},
		"too little space": {fourHosts, 4, func(f *fakeWorld) {
			for id := range 4 {
				f.ceph.Use(id, 3<<20)
			}
		}, api.ReasonInsufficientSpace, "its data does not fit on the other hosts: their OSDs would be 100 % full"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(tt.world())
			f.settle(t)
			if tt.setup != nil {
				tt.setup(f)
			}
			f.mode(tt.host, api.HostDrain)
			if steps := f.steps(t); slices.ContainsFunc(steps, func(s string) bool { return !strings.Contains(s, "mgr") }) {
				t.Errorf("something was done: %v", steps)
			}
			p, host := f.settle(t), f.hosts[tt.host-1].Name
			if reason := reasonOf(p, api.VerdictRefuse, "host/"+host); reason != tt.reason {
				t.Errorf("refused for the reason %q, want %s", reason, tt.reason)
			}
			if w := hostWord(p, host); !strings.HasPrefix(w, "Refuse: "+tt.want) {
				t.Errorf("%q", w)
			}
		})
	}
}

// A machine that is dead for good is emptied without a word of its agent: Ceph's word counts, that its OSDs are down and that
// nobody would miss them.
func TestDrain_deadHost(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.ceph.Stick(3, true)
	f.powerOff(4, time.Minute)
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if w := hostWord(p, "h4"); w != "Wait: data moves from osd.3 to other hosts" {
		t.Fatalf("%q", w)
	}
	f.ceph.Stick(3, false)
	p = f.settle(t)
	if d := f.daemons["c-osd-3"]; len(f.ceph.OSDs()) != 3 || d.DeletionTimestamp == nil || hostWord(p, "h4") != "Wait: mgr.a is being removed" {
		t.Errorf("OSDs %v, %q", f.ceph.OSDs(), hostWord(p, "h4"))
	}
}

// An agent that is silent while its OSD is up is waited for.
func TestDrain_silentAgent(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.mute["h4"] = true
	f.silence(4, time.Minute)
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if w := hostWord(p, "h4"); w != "Wait: waiting for osd.3 to stop" || len(f.ceph.OSDs()) != 4 {
		t.Errorf("OSDs %v, %q", f.ceph.OSDs(), w)
	}
}

// The OSDs of a host that is gone are forgotten when nobody would miss them, and not while one is up.
func TestGoneHost(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.hosts, f.nodes = f.hosts[:3], f.nodes[:3]
	p := f.round(t)
	if !contains(decisions(p), "Skip osd.3: host h4 was deleted but the OSD is up") {
		t.Errorf("%v", decisions(p))
	}
	f.broken["c-osd-3"] = true
	f.ceph.Stick(3, true)
	for range 6 { // the daemon's agent is gone: it says nothing
		f.ceph.Sync(f.without("c-osd-3"))
		p = f.round(t)
	}
	if w := hostWord(p, "h4"); w != "Wait: data moves from osd.3 to other hosts" {
		t.Fatalf("%q", w)
	}
	f.ceph.Stick(3, false)
	for range 4 {
		p = f.round(t)
	}
	if len(f.ceph.OSDs()) != 3 || f.daemons["c-osd-3"].DeletionTimestamp == nil {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// without are all daemons but one.
func (f *fakeWorld) without(name string) []api.Daemon {
	var all []api.Daemon
	for _, d := range f.daemons {
		if d.Name != name {
			all = append(all, *d)
		}
	}
	return all
}

// A mgr fails over off a host that is silent, when Ceph misses it too, and not at once. Nothing is stopped for that.
func TestLostMgr(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	lost := f.daemons["c-mgr-b"]
	host := &f.hosts[slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == lost.Spec.Host })]
	silence := func(since time.Duration) {
		host.Status.Conditions = []metav1.Condition{{
			Type: api.HostAgentConnected, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(f.now.Add(-since)),
		}}
	}
	silence(time.Hour)
	if p := f.settle(t); f.daemons["c-mgr-c"] != nil {
		t.Fatalf("a mgr that Ceph has was replaced: %v", decisions(p))
	}
	f.broken["c-mgr-b"] = true
	f.agents()
	silence(20 * time.Second)
	p := f.round(t)
	if f.daemons["c-mgr-c"] != nil || !contains(decisions(p), "Wait mgr.b: not replaced yet: the agent of host h1 has been disconnected") {
		t.Fatalf("%v", decisions(p))
	}
	silence(2 * time.Minute)
	if p = f.settle(t); f.daemons["c-mgr-c"] == nil || f.daemons["c-mgr-b"].Spec.State != api.WantRunning {
		t.Fatalf("%v", decisions(p))
	}
	host.Status.Conditions = nil
	delete(f.broken, "c-mgr-b")
	if p = f.settle(t); !p.Done || len(f.daemons) != 9 {
		t.Errorf("%v, %v", p.Status.Reasons, slices.Sorted(maps.Keys(f.daemons)))
	}
}

// until runs orchestrations until something is so.
func (f *fakeWorld) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 60 {
		if is() {
			return
		}
		f.agents()
		f.round(t)
	}
	t.Fatalf("it never comes to it that %s: %v", what, decisions(f.plan()))
}

// While Ceph does not answer, what was begun stays begun: an OSD that was told to leave or to stop is not told otherwise.
func TestDrain_unreachable(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.mode(4, api.HostDrain)
	f.until(t, "osd.3 is told to stop", func() bool { return f.daemons["c-osd-3"].Spec.State == api.WantStopped })
	f.powerOff(1, time.Second)
	f.powerOff(2, time.Second)
	f.agents()
	p := f.round(t)
	if d := f.daemons["c-osd-3"]; d.Spec.State != api.WantStopped || !drains(d) || hostWord(p, "h4") != "Wait: waiting for Ceph: it does not answer, and it must confirm each removal" {
		t.Errorf("%s, %v", d.Spec.State, decisions(p))
	}
	// Given back after Ceph has forgotten it, it is made known once more before it starts.
	f.powerOn(1)
	f.powerOn(2)
	f.until(t, "Ceph has forgotten osd.3", func() bool { return len(f.ceph.OSDs()) == 3 })
	f.mode(4, api.HostActive)
	want := []string{"osd new osd.3", "Prepared osd.3", "Running osd.3", "Running osd.3"} // the last: with its place
	if diff := cmp.Diff(want, f.steps(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
