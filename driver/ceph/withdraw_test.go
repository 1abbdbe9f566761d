package ceph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
)

// twoDisks has four hosts with an OSD on each of two disks, in the order of hosts.
func twoDisks() *world {
	w := newWorld(3, 1)
	for i := 1; i <= 4; i++ {
		w.host(i, 2)
		w.node(i, "wwn-"+string(rune('0'+i))+"0", "wwn-"+string(rune('0'+i))+"1")
	}
	return w
}

// withdraw takes the second disk from the last host's node.
func (f *fakeWorld) withdraw() { f.nodes[3].Spec.Devices = f.nodes[3].Spec.Devices[:1] }

// word is what the plan says of an object.
func word(p []string, object string) string {
	for _, d := range p {
		if _, rest, ok := strings.Cut(d, " "+object+": "); ok {
			return rest
		}
	}
	return ""
}

// An OSD whose device is taken from its node leaves step by step; what becomes of its disk is the cluster's policy.
func TestWithdraw(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		t.Run(string(policy), func(t *testing.T) {
			f := withFake(twoDisks())
			f.cluster.Spec.DeletionPolicy = policy
			f.settle(t)
			f.withdraw()
			want := []string{"Running osd.7", "osd crush reweight osd.7", "osd out osd.7", "Stopped osd.7", "osd purge osd.7"}
			if diff := cmp.Diff(want, f.steps(t)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			p := f.settle(t)
			if !p.Done || len(f.ceph.OSDs()) != 7 || f.daemons["c-osd-7"] != nil || f.daemons["c-osd-6"] == nil {
				t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
			}
			if free := f.device("wwn-41").Availability == api.DeviceAvailable; free != (policy == api.DeletionWipe) {
				t.Errorf("the device is free: %v", free)
			}
		})
	}
}

// A node that is deleted has all its OSDs leave together.
func TestWithdraw_node(t *testing.T) {
	f := withFake(twoDisks())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.nodes = f.nodes[:3]
	steps := f.steps(t)
	if steps = append(steps, f.steps(t)...); !slices.Contains(steps, "osd crush reweight osd.6, osd.7") {
		t.Errorf("%v", steps)
	}
	if p := f.settle(t); len(f.ceph.OSDs()) != 6 || !p.Done {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// A node that gets another name is gone for a moment: meanwhile nothing leaves its host, and that is said; nothing of it is left. That it would
// leave is foreseen all the same.
func TestWithdraw_renamed(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	gone := f.nodes[0]
	f.nodes = f.nodes[1:]
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := engine.Project(f.driver, v, f.now)
	if !slices.ContainsFunc(shown.Steps, func(s engine.ProjectedStep) bool {
		return slices.ContainsFunc(s.Plan.Commands, func(c engine.Command) bool { return c.Verb == verbReweight })
	}) {
		t.Errorf("that its OSDs leave is not foreseen: %v", shown.Open)
	}
	for _, object := range []string{"mon.a", "osd.0", "osd.1"} {
		if w := word(decisions(p, api.VerdictWait), object); !strings.Contains(w, "host h1 has no StorageNode any more") {
			t.Errorf("%s: %q", object, w)
		}
	}
	steps := f.steps(t)
	gone.Name, gone.Status = "other", api.StorageNodeStatus{}
	f.nodes = append(f.nodes, gone)
	steps = append(steps, f.steps(t)...)
	want := []string{"Running mon.a", "Running osd.0", "Running osd.1"}
	if diff := cmp.Diff(slices.Concat(want, want), steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p = f.settle(t); !p.Done || memory.Of(f.daemons["c-osd-0"], memory.LostSince) != "" {
		t.Errorf("%v", decisions(p))
	}
}

// Named again before it is empty, it is as it was.
func TestWithdraw_namedAgain(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.ceph.Stick(7, true)
	f.withdraw()
	p := f.settle(t)
	if w := word(decisions(p), "osd.7"); w != "data moves from osd.7 to other OSDs" || f.daemons["c-osd-7"].Spec.State != api.WantRunning {
		t.Fatalf("%q", w)
	}
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-41")
	steps := f.steps(t)
	if p = f.settle(t); !p.Done || !slices.Contains(steps, "osd crush reweight osd.7") || drains(f.daemons["c-osd-7"]) {
		t.Errorf("%v, %v", p.Status.Reasons, steps)
	}
}

// Whose the device is has to be plain: of what a node may still mean nothing leaves.
func TestWithdraw_stays(t *testing.T) {
	for name, change := range map[string]func(*fakeWorld){
		"the node's labels select no host": func(f *fakeWorld) { f.nodes[3].Spec.NodeSelector = map[string]string{"gone": "yes"} },
		"the disk is not there":            func(f *fakeWorld) { f.hosts[3].Status.Devices = f.hosts[3].Status.Devices[:1] },
		"no cluster is named and there are two": func(f *fakeWorld) {
			for i := range f.nodes {
				f.nodes[i].Spec.Cluster = ""
			}
			f.clusters = append(f.clusters, *f.cluster.DeepCopy())
			f.clusters[0].Name = "another"
		},
		"another entry means nothing": func(f *fakeWorld) {
			f.withdraw()
			f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "/dev/sdz")
		},
		"the node is made anew, and selects no host yet": func(f *fakeWorld) {
			f.nodes[3].Name, f.nodes[3].Status = "n4-new", api.StorageNodeStatus{}
			f.nodes[3].Spec.NodeSelector = map[string]string{"rack": "4"}
		},
		"the node is made anew, and the disks are not there yet": func(f *fakeWorld) {
			f.nodes[3].Name, f.nodes[3].Status = "n4-new", api.StorageNodeStatus{}
			f.hosts[3].Status.Devices = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			change(f)
			for range 5 { // no agent says anything new
				f.round(t)
			}
			if d := f.daemons["c-osd-7"]; len(f.ceph.OSDs()) != 8 || drains(d) {
				t.Errorf("OSDs %v, %v", f.ceph.OSDs(), d.Spec.Parameters)
			}
		})
	}
}

func TestWithdraw_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		world  func() *world
		change func(*fakeWorld)
		osd    string
		want   string
	}{
		"too few hosts": {
			threeHosts, func(f *fakeWorld) { f.nodes[2].Spec.Devices = nil }, "osd.2",
			"no StorageNode names its device, but the OSD cannot be removed: pool device_health_metrics keeps 3 copies, one per host, but 2 hosts would be left",
		},
		"too little space": {twoDisks, func(f *fakeWorld) {
			for id := range 8 {
				f.ceph.Use(id, 4<<20-1)
			}
			f.withdraw()
		}, "osd.7", "no StorageNode names its device, but the OSD cannot be removed: its data does not fit on the other OSDs: they would be 114 % full"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(tt.world())
			f.settle(t)
			tt.change(f)
			if steps := f.steps(t); len(steps) != 0 {
				t.Errorf("something was done: %v", steps)
			}
			if w := word(decisions(f.settle(t), api.VerdictRefuse), tt.osd); !strings.HasPrefix(w, tt.want) {
				t.Errorf("%q", w)
			}
		})
	}
}

// Of two that do not fit on the others together one goes, and the other one is refused.
func TestWithdraw_oneFits(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	for id := range 8 {
		f.ceph.Use(id, 4<<20*78/100)
	}
	f.nodes = f.nodes[:3]
	p := f.settle(t)
	if f.daemons["c-osd-6"] != nil || f.daemons["c-osd-7"] == nil || drains(f.daemons["c-osd-7"]) {
		t.Errorf("OSDs %v", f.ceph.OSDs())
	}
	if w := word(decisions(p, api.VerdictRefuse), "osd.7"); !strings.Contains(w, "cannot be removed: its data does not fit on the other OSDs") {
		t.Errorf("%q of %v", w, decisions(p))
	}
}

// A disk that is replaced by another in one change: the old OSD goes when the new one is there.
func TestWithdraw_replaced(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.nodes[2].Spec.Devices = []string{"wwn-31"}
	p := f.round(t)
	if w := word(decisions(p, api.VerdictWait), "osd.2"); !strings.Contains(w, "waiting for a new OSD") {
		t.Errorf("%q", w)
	}
	if p = f.settle(t); !p.Done || len(f.ceph.OSDs()) != 3 || f.daemons["c-osd-2"] != nil || f.daemons["c-osd-3"] == nil {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// In maintenance a host is left as it is.
func TestWithdraw_inMaintenance(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.mode(4, api.HostMaintenance)
	f.settle(t)
	f.withdraw()
	p := f.settle(t)
	if w := word(decisions(p), "osd.7"); w != "no StorageNode names its device; waiting for the end of mode Maintenance of host h4" || len(f.ceph.OSDs()) != 8 {
		t.Errorf("%q", w)
	}
	f.mode(4, api.HostActive)
	if p = f.settle(t); !p.Done || len(f.ceph.OSDs()) != 7 {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// The mon of a host that no node means any more has another one take its place, and goes.
func TestWithdraw_mon(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.nodes = f.nodes[1:]
	p := f.settle(t)
	if got := f.states("h1"); len(got) != 0 || !p.Done || len(f.ceph.OSDs()) != 6 {
		t.Errorf("left on h1: %v, %v", got, p.Status.Reasons)
	}
	f.checkMons(t, "b@h2", "c@h3", "d@h4")
}

// Without a host to go to it stays, and so it does as long as a node may mean the host.
func TestWithdraw_monStays(t *testing.T) {
	for name, tt := range map[string]struct {
		world  func() *world
		change func(*fakeWorld)
	}{
		"no other host": {threeHosts, func(f *fakeWorld) { f.nodes = f.nodes[1:] }},
		"a node's labels select no host": {twoDisks, func(f *fakeWorld) {
			f.nodes[0].Spec.NodeSelector, f.nodes[0].Status = map[string]string{"gone": "yes"}, api.StorageNodeStatus{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(tt.world())
			f.settle(t)
			tt.change(f)
			f.settle(t)
			f.checkMons(t, "a@h1", "b@h2", "c@h3")
		})
	}
}

// The mgr of a host that no node means any more goes when another one stands by; without a host to go to it stays, and that is said.
func TestWithdraw_mgr(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.nodes = f.nodes[:3]
	p := f.settle(t)
	if got := f.states("h4"); len(got) != 0 || !p.Done || f.daemons["c-mgr-b"] == nil || f.daemons["c-mgr-b"].Spec.Host == "h4" {
		t.Errorf("left on h4: %v, %v %v", got, p.Status.Reasons, decisions(p))
	}

	f = withFake(threeHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 3
	f.settle(t)
	f.nodes = f.nodes[:2]
	p = f.settle(t)
	if got := word(decisions(p), "mgr.c"); !strings.Contains(got, "it stays: no other host may run a mgr") {
		t.Errorf("%q of %v", got, decisions(p))
	}
}

// An entry that means nothing may be the device by another name: it is told that the OSD stays for that, and one that has begun to leave
// is not brought back.
func TestWithdraw_vague(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.ceph.Stick(7, true)
	f.withdraw()
	f.settle(t)
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "/dev/sdz")
	if steps := f.steps(t); len(steps) > 0 {
		t.Errorf("%v", steps)
	}
	if w := word(decisions(f.settle(t), api.VerdictSkip), "osd.7"); !strings.Contains(w, "all devices of StorageNode n4 are identified") {
		t.Errorf("%q", w)
	}
}

// A node that names a host that has not joined means no other one, and holds up nothing. One that goes by another label may mean any host.
func TestWithdraw_strayNode(t *testing.T) {
	stray := func(label, value string) (*fakeWorld, *engine.Plan) {
		f := withFake(twoDisks())
		f.settle(t)
		f.node(9, "wwn-90").Spec.NodeSelector = map[string]string{label: value}
		f.withdraw()
		f.nodes = f.nodes[1:]
		return f, f.settle(t)
	}
	f, p := stray(api.LabelHostname, "h9")
	if got := f.states("h1"); len(got) != 0 || len(f.ceph.OSDs()) != 5 || !strings.Contains(word(decisions(p, api.VerdictWait), "node/n9"), "check that the host has joined") {
		t.Errorf("left on h1: %v, OSDs %v, %v", got, f.ceph.OSDs(), decisions(p))
	}
	f.checkMons(t, "b@h2", "c@h3", "d@h4")

	f, p = stray("rack", "r9")
	for _, osd := range []string{"osd.0", "osd.7"} {
		if w := word(decisions(p, api.VerdictSkip), osd); !strings.Contains(w, "all devices of StorageNode n9 are identified") {
			t.Errorf("%s: %q", osd, w)
		}
	}
	if f.checkMons(t, "a@h1", "b@h2", "c@h3"); len(f.ceph.OSDs()) != 8 {
		t.Errorf("OSDs %v", f.ceph.OSDs())
	}
}

// A host can go into maintenance while data moves from one of its OSDs, which goes on when it is back.
func TestWithdraw_maintenanceMeanwhile(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.ceph.Stick(7, true)
	f.withdraw()
	f.settle(t)
	f.mode(4, api.HostMaintenance)
	if p := f.settle(t); hostWord(p, "h4") != "" || f.daemons["c-osd-7"].Spec.State != api.WantStopped {
		t.Errorf("%q, osd.7 is wanted %s", hostWord(p, "h4"), f.daemons["c-osd-7"].Spec.State)
	}
	f.mode(4, api.HostActive)
	if p := f.settle(t); f.daemons["c-osd-7"].Spec.State != api.WantRunning {
		t.Errorf("osd.7 does not run although data is on it: %v", decisions(p))
	}
	f.ceph.Stick(7, false)
	if p := f.settle(t); !p.Done || len(f.ceph.OSDs()) != 7 {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// Each OSD is judged before it begins to leave, also when another one of its host has begun.
func TestWithdraw_oneAfterTheOther(t *testing.T) {
	w := twoDisks()
	w.hosts, w.nodes = w.hosts[:3], w.nodes[:3]
	f := withFake(w)
	f.settle(t)
	f.ceph.Stick(5, true)
	f.nodes[2].Spec.Devices = f.nodes[2].Spec.Devices[:1]
	f.settle(t)
	f.nodes[2].Spec.Devices = nil
	if steps := f.steps(t); len(steps) > 0 {
		t.Errorf("%v", steps)
	}
	f.ceph.Stick(5, false)
	p := f.settle(t)
	if w := word(decisions(p, api.VerdictRefuse), "osd.4"); !strings.Contains(w, "but 2 hosts would be left") || len(f.ceph.OSDs()) != 5 {
		t.Errorf("OSDs %v, %q", f.ceph.OSDs(), w)
	}
}

// A host that has begun has its turn to the end.
func TestWithdraw_turn(t *testing.T) {
	w := twoDisks()
	w.host(5, 1)
	w.node(5, "wwn-50")
	f := withFake(w)
	f.settle(t)
	f.ceph.Stick(8, true)
	f.nodes = f.nodes[:4]
	f.settle(t)
	f.withdraw()
	if steps := f.steps(t); len(steps) > 0 {
		t.Errorf("%v", steps)
	}
	f.ceph.Stick(8, false)
	if p := f.settle(t); !p.Done || len(f.ceph.OSDs()) != 7 {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// What Ceph knows by the OSD's number may be another one, which is left alone.
func TestWithdraw_foreignNumber(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.ceph.Register(7, "aaaaaaaa-0000-4000-8000-000000000000")
	f.withdraw()
	if steps := f.steps(t); slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, "osd ") }) {
		t.Errorf("%v", steps)
	}
	if f.daemons["c-osd-7"] != nil {
		t.Error("its Daemon is left")
	}
}
