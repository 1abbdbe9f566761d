package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
)

// monSteps runs rounds until the world is at rest, and notes what becomes of mons: which Daemons are made, told to leave and
// removed, and what Ceph is asked for. In each round Ceph has a quorum.
func (f *fakeWorld) monSteps(t *testing.T) []string {
	t.Helper()
	var all []string
	for range 40 {
		f.agents()
		p := f.round(t)
		f.now = f.now.Add(recheckSoon)
		for _, c := range p.Daemons {
			switch d := c.Daemon; {
			case d.Spec.Type == TypeMon && c.New:
				all = append(all, "new "+label(&d)+" on "+d.Spec.Host)
			case d.Spec.Type == TypeMon && strings.HasPrefix(c.Reason, "removing it"):
				all = append(all, label(&d)+" leaves")
			}
		}
		for _, c := range p.Commands {
			if c.Verb == verbMonRemove {
				all = append(all, c.Verb+" "+c.Object)
			}
		}
		for _, r := range p.Remove {
			if strings.Contains(r.Name, "-mon-") {
				all = append(all, "removed "+r.Name)
			}
		}
		if len(f.ceph.Quorum()) == 0 {
			t.Fatalf("no quorum after %v", all)
		}
	}
	return all
}

// checkMons compares Ceph's map and the addresses that clients are told with the mons that are expected.
func (f *fakeWorld) checkMons(t *testing.T, want ...string) {
	t.Helper()
	var told []string
	for _, m := range monset.Of(f.view().Daemons) {
		told = append(told, m.ID+"@"+m.Host)
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what clients are told (-want +got):\n%s", diff)
	}
	var ids []string
	for _, m := range want {
		id, _, _ := strings.Cut(m, "@")
		ids = append(ids, id)
	}
	if diff := cmp.Diff(ids, f.ceph.Monmap()); diff != "" {
		t.Errorf("Ceph's map (-want +got):\n%s", diff)
	}
	for _, d := range f.daemons {
		conf := *d.Spec.Files[0].Sources[0].Text
		for _, m := range monset.Of(f.view().Daemons) {
			if d.DeletionTimestamp == nil && !strings.Contains(conf, m.Addrs()) {
				t.Errorf("%s does not know mon.%s", d.Name, m.ID)
			}
		}
		if d.DeletionTimestamp == nil && strings.Count(conf, ":"+monset.PortV2) != len(want) {
			t.Errorf("%s knows mons that there are not:\n%s", d.Name, conf)
		}
	}
}

var aMovesToH4 = []string{"new mon.d on h4", "mon.a leaves", "mon remove mon.a", "removed c-mon-a"}

func TestMonMoves(t *testing.T) {
	for name, tt := range map[string]struct {
		world  func() *world
		change func(*fakeWorld)
		steps  []string
		mons   []string
	}{
		"the host is drained": {fourHosts, func(f *fakeWorld) { f.mode(1, api.HostDrain) }, aMovesToH4, []string{"b@h2", "c@h3", "d@h4"}},
		"the host is dead":    {fourHosts, func(f *fakeWorld) { f.powerOff(1, monReplaceAfter) }, aMovesToH4, []string{"b@h2", "c@h3", "d@h4"}},
		"the host is dead, and drained": {fourHosts, func(f *fakeWorld) {
			f.powerOff(1, time.Second)
			f.mode(1, api.HostDrain)
		}, aMovesToH4, []string{"b@h2", "c@h3", "d@h4"}},
		"the host is gone": {fourHosts, func(f *fakeWorld) {
			f.off["h1"] = true
			f.hosts = f.hosts[1:]
		}, aMovesToH4, []string{"b@h2", "c@h3", "d@h4"}},
		"a shorter time is wanted": {fourHosts, func(f *fakeWorld) {
			f.cluster.Spec.Ceph.Mon.ReplaceAfter = &metav1.Duration{Duration: time.Minute}
			f.powerOff(1, time.Minute)
		}, aMovesToH4, []string{"b@h2", "c@h3", "d@h4"}},
		"not dead for long":            {fourHosts, func(f *fakeWorld) { f.powerOff(1, time.Minute) }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"only the agent is silent":     {fourHosts, func(f *fakeWorld) { f.powerOff(1, time.Hour); delete(f.off, "h1") }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"only the mon is down":         {fourHosts, func(f *fakeWorld) { f.broken["c-mon-a"] = true }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"the host is in maintenance":   {fourHosts, func(f *fakeWorld) { f.powerOff(1, time.Hour); f.mode(1, api.HostMaintenance) }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"no host is free":              {threeHosts, func(f *fakeWorld) { f.powerOff(1, time.Hour) }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"the free host is closed":      {fourHosts, func(f *fakeWorld) { f.powerOff(1, time.Hour); f.mode(4, api.HostMaintenance) }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"the free host is silent, too": {fourHosts, func(f *fakeWorld) { f.powerOff(1, time.Hour); f.powerOff(4, time.Hour) }, nil, []string{"a@h1", "b@h2", "c@h3"}},
		"the only mon moves": {func() *world {
			w := fourHosts()
			w.cluster.Spec.Ceph.Mon.Count = 1
			return w
		}, func(f *fakeWorld) { f.mode(1, api.HostDrain) }, []string{"new mon.b on h2", "mon.a leaves", "mon remove mon.a", "removed c-mon-a"}, []string{"b@h2"}},
		"fewer are wanted": {
			fourHosts, func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 1 },
			[]string{"mon.c leaves", "mon remove mon.c", "mon.b leaves", "removed c-mon-c", "mon remove mon.b", "removed c-mon-b"},
			[]string{"a@h1"},
		},
		"more are wanted": {func() *world {
			w := fourHosts()
			w.cluster.Spec.Ceph.Mon.Count = 1
			return w
		}, func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 3 }, []string{"new mon.b on h2", "new mon.c on h3"}, []string{"a@h1", "b@h2", "c@h3"}},
		"five are wanted": {
			fiveMonHosts, func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 5 },
			[]string{"new mon.d on h4", "new mon.e on h5"},
			[]string{"a@h1", "b@h2", "c@h3", "d@h4", "e@h5"},
		},
		"three are enough": {
			func() *world {
				w := fiveMonHosts()
				w.cluster.Spec.Ceph.Mon.Count = 5
				return w
			}, func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 3 },
			[]string{"mon.e leaves", "mon remove mon.e", "mon.d leaves", "removed c-mon-e", "mon remove mon.d", "removed c-mon-d"},
			[]string{"a@h1", "b@h2", "c@h3"},
		},
		"an even number is wanted": {fourHosts, func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 4 }, nil, []string{"a@h1", "b@h2", "c@h3"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(tt.world())
			f.settle(t)
			tt.change(f)
			if diff := cmp.Diff(tt.steps, slices.Compact(f.monSteps(t))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			f.checkMons(t, tt.mons...)
			for _, d := range f.daemonsOf(TypeMon) {
				if drains(d) && d.Spec.OnRemoval != api.DeletionWipe {
					t.Errorf("%s leaves and keeps its store, with which it can never join again", d.Name)
				}
			}
		})
	}
}

// A mon is taken out of Ceph's map for the reason that it left for: another one is there, or fewer are wanted.
func TestMons_removedWhy(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fakeWorld)
		want   string
	}{
		"fewer are wanted":    {func(f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 1 }, "surplus: the desired number of mons is in the quorum"},
		"its host is drained": {func(f *fakeWorld) { f.mode(1, api.HostDrain) }, "another mon has replaced it"},
		"its host is silent":  {func(f *fakeWorld) { f.powerOff(1, time.Hour) }, "another mon has replaced it"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(fourHosts())
			f.settle(t)
			tt.change(f)
			told := 0
			for range 40 {
				f.agents()
				p := f.round(t)
				f.now = f.now.Add(recheckSoon)
				for _, c := range p.Commands {
					if c.Verb != verbMonRemove {
						continue
					}
					if told++; c.Reason != tt.want {
						t.Errorf("%s is removed because %s, want %s", c.Object, c.Reason, tt.want)
					}
				}
			}
			if told == 0 {
				t.Error("no mon was removed")
			}
		})
	}
}

func fiveMonHosts() *world {
	w := fourHosts()
	w.host(5, 2)
	w.node(5, "wwn-50")
	return w
}

// Once the mons have had a quorum none of them may found a cluster of its own any more, whatever becomes of its store; nor is that
// forgotten while they do not answer.
func TestMons_founded(t *testing.T) {
	f := withFake(threeHosts())
	f.round(t)
	check := func(when, want string) {
		t.Helper()
		for _, d := range f.daemonsOf(TypeMon) {
			if got := d.Spec.Parameters[ParamMonFounded]; got != want {
				t.Errorf("%s: %s is founded: %q, want %q", when, d.Name, got, want)
			}
		}
	}
	check("before there is a quorum", "")
	f.settle(t)
	check("in a quorum", "true")
	f.powerOff(1, 0)
	f.powerOff(2, 0)
	f.round(t)
	check("when it is lost", "true")
}

func (f *fakeWorld) daemonsOf(daemonType string) []*api.Daemon {
	var all []*api.Daemon
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		if d := f.daemons[name]; d.Spec.Type == daemonType {
			all = append(all, d)
		}
	}
	return all
}

// What is said of a mon that is missing and not replaced.
func TestMonMoves_reasons(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.powerOff(1, time.Minute)
	f.agents()
	if p := f.round(t); !contains(decisions(p), "Wait mon.a: not replaced yet: out of the quorum, and the "+
		"agent of host h1 disconnected, for less than 10m0s") {
		t.Errorf("%v", decisions(p))
	}
	f = withFake(threeHosts())
	f.settle(t)
	f.powerOff(1, time.Hour)
	if p := f.settle(t); !contains(decisions(p), "Skip mon.a: cannot replace it (out of the quorum, and the agent of "+
		"host h1 disconnected, for 10m0s): no other host may run a mon") {
		t.Errorf("%v", decisions(p))
	}
	f.powerOn(1)
	f.mode(1, api.HostDrain)
	want := "Refuse: cannot drain: no other host may run mon.a (spec.ceph.mon.count is 3, one mon per host); add a host or lower the count"
	if w := hostWord(f.settle(t), "h1"); w != want {
		t.Errorf("%q", w)
	}
	f.mode(1, api.HostActive)
	f.cluster.Spec.Ceph.Mon.Count = 5
	if p := f.settle(t); !contains(decisions(p), "Skip mons: the cluster has 3 mons although spec.ceph.mon.count is 5") || !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

// Without a quorum nothing is made and nothing goes: mons that were added then could only found another cluster.
func TestMonMoves_notWithoutQuorum(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.powerOff(2, time.Hour)
	for range 10 {
		f.agents()
		if p := f.round(t); !p.Empty() {
			t.Fatalf("%v", decisions(p))
		}
	}
}

// A host that is heard again before another mon has joined keeps its mon.
func TestMonMoves_backInTime(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.broken["c-mon-d"] = true // it never joins
	if got := f.monSteps(t); !slices.Equal(got, []string{"new mon.d on h4"}) {
		t.Fatalf("%v", got)
	}
	f.powerOn(1)
	if got := f.monSteps(t); !slices.Equal(got, []string{"mon.d leaves", "removed c-mon-d"}) {
		t.Fatalf("%v", got)
	}
	f.checkMons(t, "a@h1", "b@h2", "c@h3")
	// The name is not given again at once: d's agent may still be at it.
	if p := f.settle(t); !p.Done {
		t.Errorf("%v", p.Status.Reasons)
	}
}

// A mon that comes back when it was replaced does not get in, and its host is tidied up.
func TestMonMoves_oldOneReturns(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.monSteps(t)
	old := f.daemons["c-mon-a"]
	if old == nil || old.DeletionTimestamp == nil || !drains(old) {
		t.Fatalf("%+v", old)
	}
	running := *old
	running.Status.State = api.DaemonRunning
	f.ceph.Sync(append(f.powered(), running)) // the machine boots, and starts what it knows
	f.round(t)
	f.checkMons(t, "b@h2", "c@h3", "d@h4")
	f.powerOn(1)
	if p := f.settle(t); f.daemons["c-mon-a"] != nil || !p.Done {
		t.Errorf("%v, %v", slices.Sorted(maps.Keys(f.daemons)), p.Status.Reasons)
	}
}

// The host where another mon was to be dies before it has joined: the next one goes elsewhere, by a new name.
func TestMonMoves_joiningHostDies(t *testing.T) {
	f := withFake(fourHosts())
	f.host(5, 1)
	f.settle(t)
	f.node(5, "wwn-50")
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.broken["c-mon-d"] = true
	f.monSteps(t)
	f.powerOff(4, time.Hour)
	want := []string{"mon.d leaves", "new mon.e on h5", "removed c-mon-d", "mon.a leaves", "mon remove mon.a", "removed c-mon-a"}
	if diff := cmp.Diff(want, f.monSteps(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.checkMons(t, "b@h2", "c@h3", "e@h5")
}

// Of two dead hosts of five mons one is replaced after the other.
func TestMonMoves_oneByOne(t *testing.T) {
	w := newWorld(5, 1)
	for i := 1; i <= 7; i++ {
		w.host(i, 1)
		w.node(i, "wwn-"+string(rune('0'+i))+"0")
	}
	f := withFake(w)
	f.settle(t)
	f.powerOff(1, time.Hour)
	f.powerOff(2, time.Hour)
	want := []string{
		"new mon.f on h6", "mon.a leaves", "mon remove mon.a", "new mon.g on h7", "removed c-mon-a",
		"mon.b leaves", "mon remove mon.b", "removed c-mon-b",
	}
	if diff := cmp.Diff(want, f.monSteps(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.checkMons(t, "c@h3", "d@h4", "e@h5", "f@h6", "g@h7")
}

// A mon whose Daemon was deleted gets it back on its host, so no other mon is made there meanwhile.
func TestMonMoves_lostDaemon(t *testing.T) {
	w := newWorld(3, 1)
	for i := 1; i <= 5; i++ {
		w.host(i, 1)
		w.node(i, "wwn-"+string(rune('0'+i))+"0")
	}
	f := withFake(w)
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Count = 5
	delete(f.daemons, "c-mon-b")
	f.settle(t)
	f.checkMons(t, "a@h1", "b@h2", "c@h3", "d@h4", "e@h5")
}

// While a mon moves, a host in which another one would have to stop waits, and is not refused.
func TestMonMoves_maintenanceWaits(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.mode(1, api.HostDrain)
	f.until(t, "a fourth mon is in", func() bool { return len(f.ceph.Monmap()) == 4 })
	f.mode(2, api.HostMaintenance)
	p := f.round(t)
	if w := hostWord(p, "h2"); !strings.HasPrefix(w, "Wait: waiting for mon.") {
		t.Errorf("%q, %v", w, decisions(p))
	}
}

// Whatever write is the last one of a leader, the next one ends what it began, in the same way.
func TestMonMoves_cutOff(t *testing.T) {
	for round, writes := 0, 0; round < 8; {
		f := withFake(fourHosts())
		f.settle(t)
		f.mode(1, api.HostDrain)
		for range round {
			f.agents()
			f.round(t)
		}
		f.agents()
		v, p, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.apply(t.Context(), v, firstWrites(p, writes)); err != nil {
			t.Fatal(err)
		}
		last := f.settle(t)
		f.checkMons(t, "b@h2", "c@h3", "d@h4")
		if !last.Done || t.Failed() {
			t.Fatalf("cut off in round %d after %d writes: %v", round, writes, last.Status.Reasons)
		}
		if writes++; writes > len(p.Daemons)+len(p.Remove)+len(p.Commands) {
			round, writes = round+1, 0
		}
	}
}

// A name is given once, also when the mon that had the newest one is gone.
func TestMonMoves_newNames(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Count = 1
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Count = 3
	if diff := cmp.Diff([]string{"new mon.d on h2", "new mon.e on h3"}, f.monSteps(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.checkMons(t, "a@h1", "d@h2", "e@h3")
}

func TestMembersOf(t *testing.T) {
	mon := func(id, host, list string, leaves bool) api.Daemon {
		d := api.Daemon{Spec: api.DaemonSpec{Type: TypeMon, ID: id, Host: host, Parameters: map[string]string{ParamAddress: "10.0.0." + host[1:]}}}
		var members []member
		for m := range strings.FieldsSeq(list) {
			id, host, _ := strings.Cut(m, "@")
			members = append(members, member{ID: id, Host: host, Address: "10.0.0." + host[1:]})
		}
		d.Spec.Parameters[ParamMonmap], d.Spec.Parameters[ParamMonHosts] = monset.Params(members)
		if leaves {
			memory.Set(&d, memory.Drain, memory.Begun)
		}
		return d
	}
	for name, tt := range map[string]struct {
		daemons []api.Daemon
		want    string
	}{
		"all agree":                       {[]api.Daemon{mon("a", "h1", "a@h1 b@h2", false), mon("b", "h2", "a@h1 b@h2", false)}, "a@h1 b@h2"},
		"a Daemon was lost":               {[]api.Daemon{mon("a", "h1", "a@h1 b@h2", false)}, "a@h1 b@h2"},
		"one joins":                       {[]api.Daemon{mon("a", "h1", "a@h1", false), mon("b", "h2", "a@h1", false)}, "a@h1"},
		"half of the lists are written":   {[]api.Daemon{mon("a", "h1", "a@h1", false), mon("b", "h2", "a@h1 b@h2", false)}, "a@h1 b@h2"},
		"one leaves":                      {[]api.Daemon{mon("a", "h1", "a@h1 b@h2", true), mon("b", "h2", "a@h1 b@h2", false)}, "b@h2"},
		"only that one leaves is written": {[]api.Daemon{mon("a", "h1", "a@h1", true), mon("b", "h2", "a@h1", false)}, "b@h2"},
		"the list of one that leaves is old": {[]api.Daemon{
			mon("a", "h1", "a@h1", false), mon("c", "h3", "a@h1 b@h2 c@h3", true),
		}, "a@h1"},
		"none": {nil, ""},
	} {
		var got []string
		for _, m := range monset.Of(tt.daemons) {
			got = append(got, m.ID+"@"+m.Host)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
	}
}

// Before a mon leaves, those are counted that would be left: in the quorum, and to stay there.
func TestMayRemoveMon(t *testing.T) {
	mon := func(id string, state api.WantedState, leaves bool) *api.Daemon {
		d := &api.Daemon{Spec: api.DaemonSpec{Type: TypeMon, ID: id, State: state, Parameters: map[string]string{}}}
		d.Name = "c-mon-" + id
		if leaves {
			memory.Set(d, memory.Drain, memory.Begun)
		}
		return d
	}
	for name, tt := range map[string]struct {
		quorum  []string
		change  map[string]*api.Daemon
		stopNow string
		want    bool
	}{
		"all are there":                       {quorum: []string{"a", "b", "c", "d"}, want: true},
		"it is missing itself":                {quorum: []string{"b", "c", "d"}, want: true},
		"another one is missing":              {quorum: []string{"a", "b", "c"}, want: true},
		"one is missing, one is told to stop": {quorum: []string{"a", "b", "c"}, change: map[string]*api.Daemon{"c": mon("c", api.WantStopped, false)}},
		"one is missing, one stops now":       {quorum: []string{"a", "b", "c"}, stopNow: "c"},
		"one is missing, one leaves, too":     {quorum: []string{"a", "b", "c"}, change: map[string]*api.Daemon{"c": mon("c", api.WantRunning, true)}},
		"an administrator's own mon counts":   {quorum: []string{"a", "b", "x"}, want: true},
	} {
		p := newPlanner(&engine.View{Cluster: newWorld(3, 1).cluster}, testTime)
		p.seen = &Observation{Monmap: []string{"a", "b", "c", "d"}, Quorum: tt.quorum}
		for _, id := range p.seen.Monmap {
			p.have["c-mon-"+id] = mon(id, api.WantRunning, false)
		}
		for id, d := range tt.change {
			p.have["c-mon-"+id] = d
		}
		p.stop["c-mon-"+tt.stopNow] = tt.stopNow != ""
		if got := p.mayRemoveMon("a"); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Two mons that were told to leave, as when the count goes down again while one joins, leave Ceph's map one after the other.
func TestMons_twoLeave(t *testing.T) {
	f := withFake(newWorld(5, 2))
	for i := range 5 {
		f.host(i+1, 1)
		f.node(i+1, "wwn-"+strconv.Itoa(i+1)+"0")
	}
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Count = 3
	for _, id := range []string{"d", "e"} {
		d := f.daemons["c-mon-"+id]
		memory.Set(d, memory.Drain, memory.Begun)
		d.Spec.OnRemoval = api.DeletionWipe
	}
	for _, want := range []int{4, 3} {
		f.round(t)
		if got := f.ceph.Monmap(); len(got) != want {
			t.Fatalf("the map is %v, want %d mons", got, want)
		}
	}
}

// TestMonMoves_awayFor: how long a host is disconnected does not count while its mon is in the
// quorum. One look without the mon replaces nothing, and the mon's return begins the time anew.
func TestMonMoves_awayFor(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.silence(1, 24*time.Hour)
	f.settle(t)
	f.off["h1"] = true
	stays := func(when string) {
		t.Helper()
		f.agents()
		f.round(t)
		if f.round(t); f.daemons["c-mon-d"] != nil {
			t.Fatalf("%s another mon is made", when)
		}
	}
	stays("at the first look without it")
	f.now = f.now.Add(monReplaceAfter - time.Minute)
	stays("before the time is over")
	delete(f.off, "h1")
	stays("as soon as it is back")
	f.off["h1"] = true
	f.now = f.now.Add(2 * time.Minute)
	stays("though it was back meanwhile")
	f.now = f.now.Add(monReplaceAfter)
	f.settle(t)
	f.checkMons(t, "b@h2", "c@h3", "d@h4")
}
