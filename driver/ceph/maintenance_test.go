package ceph

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// hostWord is what a plan says of a host, as "Verdict: message"; nothing when the host is as it is wanted.
func hostWord(p *engine.Plan, host string) string {
	for _, d := range p.Decisions {
		if d.Object == engine.HostObject(host) {
			return string(d.Verdict) + ": " + d.Message
		}
	}
	return ""
}

func (f *fakeWorld) mode(i int, mode api.HostMode) { f.hosts[i-1].Spec.Mode = mode }

// states are the wanted states of a host's daemons.
func (f *fakeWorld) states(host string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		if d := f.daemons[name]; d.Spec.Host == host {
			all = append(all, label(d)+"="+string(d.Spec.State))
		}
	}
	return all
}

// steps runs rounds until the world is at rest, and notes what is done to hosts, in its order.
func (f *fakeWorld) steps(t *testing.T) []string {
	t.Helper()
	var all []string
	for range 30 {
		f.agents()
		p := f.round(t)
		f.now = f.now.Add(recheckLater)
		for _, c := range p.Commands {
			all = append(all, c.Verb+" "+c.Object)
		}
		for _, c := range p.Daemons {
			all = append(all, string(c.Daemon.Spec.State)+" "+label(&c.Daemon))
		}
	}
	return all
}

// A host goes into maintenance step by step, and out of it again, and leaves no flag behind.
func TestMaintenance(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	want := []string{
		"mgr fail mgr.a", "osd set-group noout osd.0", "Stopped osd.0", "Stopped mon.a", "Stopped mgr.a",
	}
	if diff := cmp.Diff(want, f.steps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	p := f.round(t)
	if w := hostWord(p, "h1"); w != "" {
		t.Errorf("the host is in maintenance, and yet: %s", w)
	}
	p = f.settle(t)
	if !contains(p.Status.Reasons, "stopped for maintenance of host h1: mgr.a, mon.a, osd.0") || p.Status.Status != api.StorageDegraded || p.Recheck != 0 {
		t.Errorf("%v %v, recheck %v", p.Status.Status, p.Status.Reasons, p.Recheck)
	}
	f.mode(1, api.HostActive)
	want = []string{"Running mon.a", "Running mgr.a", "Running osd.0", "osd unset-group noout osd.0"}
	if diff := cmp.Diff(want, f.steps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if p = f.settle(t); !p.Done || len(f.ceph.Noout()) != 0 {
		t.Errorf("%v, noout %v", p.Status.Reasons, f.ceph.Noout())
	}
}

// The reasons of decisions say what a host that goes into maintenance or is drained does, in the order in
// which they come up first.
func TestModes_reasons(t *testing.T) {
	for mode, want := range map[api.HostMode]map[string][]api.Reason{
		api.HostMaintenance: {
			"host/h1": {api.ReasonConfiguring, api.ReasonStopping},
			"osd.0":   {api.ReasonHostNotActive},
			"mon.a":   {api.ReasonHostNotActive},
		},
		api.HostDrain: {
			"host/h1": {
				api.ReasonRemoving, api.ReasonAwaitingReplacement, api.ReasonConfiguring, api.ReasonMovingData,
				api.ReasonStopping,
			},
			"osd.0": {api.ReasonDeclared, api.ReasonRemoving}, // it learns where the new mon is
			"mon.a": {api.ReasonRemoving},
		},
	} {
		f := withFake(fourHosts())
		f.settle(t)
		f.mode(1, mode)
		got := map[string][]api.Reason{}
		for range 40 {
			f.agents()
			for _, d := range f.round(t).Decisions {
				of := got[d.Object]
				if want[d.Object] != nil && d.Verdict != api.VerdictSkip && !slices.Contains(of, d.Reason) {
					got[d.Object] = append(of, d.Reason)
				}
			}
			f.now = f.now.Add(recheckLater)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

// saidOf are the different texts about what h1 waits for to be back in so many runs.
func (f *fakeWorld) saidOf(t *testing.T, runs int) (texts []string) {
	t.Helper()
	for range runs {
		f.agents()
		if w := hostWord(f.round(t), "h1"); strings.Contains(w, "to return") && !slices.Contains(texts, w) {
			texts = append(texts, w)
		}
		f.now = f.now.Add(recheckSoon)
	}
	return texts
}

// Only a host that was in maintenance leaves it: daemons are stopped for a moment also when they are started again for another configuration.
func TestMaintenance_leavingOrRestarting(t *testing.T) {
	f := withFake(threeHosts())
	f.config("global", api.CephOptions{"mon_lease": "0.5"})
	f.settle(t)
	f.config("global", api.CephOptions{"mon_lease": "1"})
	if diff := cmp.Diff([]string{"Wait: waiting for mon.a to return", "Wait: waiting for mgr.a to return"}, f.saidOf(t, 30)); diff != "" {
		t.Errorf("restarted (-want +got):\n%s", diff)
	}
	f.cluster.Spec.Ceph.Config = nil
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	f.settle(t)
	f.mode(1, api.HostActive)
	if got := f.saidOf(t, 5); len(got) == 0 || !strings.HasPrefix(got[0], "Wait: leaving maintenance: waiting for ") {
		t.Errorf("left: %q", got)
	}
}

// OSDs are told to stop in the run in which Ceph is told to keep them in, after that, and not if Ceph has not taken it.
func TestMaintenance_keptInFirst(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.mode(2, api.HostMaintenance)
	f.ceph.Mute("osd set-group", true)
	var err error
	for range 30 {
		f.agents()
		v, p, e := f.observed(t.Context())
		if e != nil {
			t.Fatal(e)
		}
		if err = f.apply(t.Context(), v, p); err != nil {
			break
		}
	}
	if !errors.Is(err, rados.ErrNoAnswer) {
		t.Fatalf("Ceph was asked to keep the OSD in: %v", err)
	}
	if got := f.states("h2"); !slices.Contains(got, "osd.1=Running") {
		t.Errorf("Ceph did not answer, and the host's daemons are to be %v", got)
	}
	f.ceph.Mute("osd set-group", false)
	f.round(t)
	if got := f.states("h2"); !slices.Contains(got, "osd.1=Stopped") || !slices.Equal(f.ceph.Noout(), []int{1}) {
		t.Errorf("after one more run the host's daemons are to be %v, noout %v", got, f.ceph.Noout())
	}
}

// While one host is in maintenance the next is refused, by Ceph's own word, and nothing of it is touched.
func TestMaintenance_secondHostIsRefused(t *testing.T) {
	f := withFake(threeHosts())
	f.cluster.Spec.Ceph.Mon.Count = 1 // so that OSDs alone decide
	f.settle(t)
	f.mode(2, api.HostMaintenance)
	f.settle(t)
	before := f.states("h3")
	f.mode(3, api.HostMaintenance)
	p := f.settle(t)
	want := `Refuse: cannot stop its OSDs (down already: osd.1 on h2): placement groups would become inactive (Ceph: "unsafe to stop osd(s) at this time`
	reason := reasonOf(p, api.VerdictRefuse, "host/h3")
	if w := hostWord(p, "h3"); !strings.HasPrefix(w, want) || reason != api.ReasonNotOkToStop {
		t.Errorf("%s: %q", reason, w)
	}
	if diff := cmp.Diff(before, f.states("h3")); diff != "" || !slices.Equal(f.ceph.Noout(), []int{1}) {
		t.Errorf("noout %v, states:\n%s", f.ceph.Noout(), diff)
	}
	// When the first is back the second goes.
	f.mode(2, api.HostActive)
	if p = f.settle(t); hostWord(p, "h3") != "" || !slices.Equal(f.ceph.Noout(), []int{2}) {
		t.Errorf("%q, noout %v", hostWord(p, "h3"), f.ceph.Noout())
	}
}

// Two hosts asked for at one moment go one after the other: the second is judged when the first has stopped.
func TestMaintenance_bothAtOnce(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	f.mode(2, api.HostMaintenance)
	p := f.settle(t)
	if hostWord(p, "h1") != "" || !strings.HasPrefix(hostWord(p, "h2"), "Refuse: ") || !f.ceph.Usable() {
		t.Errorf("h1 %q, h2 %q", hostWord(p, "h1"), hostWord(p, "h2"))
	}
}

func TestMaintenance_quorum(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.broken["c-mon-b"] = true
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	p := f.settle(t)
	want := "Refuse: cannot stop mon.a: 1 of 3 mons would be in the quorum (mon.b is out of it already), 2 are needed"
	if diff := cmp.Diff(want, hostWord(p, "h1")); diff != "" || len(f.ceph.Noout()) != 0 {
		t.Error(diff)
	}
	// The host of the mon that is out anyway may go.
	f.mode(1, api.HostActive)
	f.mode(2, api.HostMaintenance)
	if p = f.settle(t); hostWord(p, "h2") != "" {
		t.Errorf("%q", hostWord(p, "h2"))
	}
}

func TestMaintenance_onlyHost(t *testing.T) {
	w := newWorld(1, 1)
	w.host(1, 1)
	w.node(1, "wwn-10")
	f := withFake(w)
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	p := f.settle(t)
	if reason := reasonOf(p, api.VerdictRefuse, "host/h1"); reason != api.ReasonQuorumAtRisk {
		t.Errorf("%s: %q", reason, hostWord(p, "h1"))
	}
}

// The only mgr gets a stand-in on another host before it stops, which goes again afterwards.
func TestMaintenance_onlyMgr(t *testing.T) {
	f := withFake(threeHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.mode(1, api.HostMaintenance)
	p := f.settle(t)
	if d := f.daemons["c-mgr-b"]; hostWord(p, "h1") != "" || d == nil || d.Spec.Host == "h1" || f.daemons["c-mgr-a"].Spec.State != api.WantStopped {
		t.Fatalf("%q, daemons %v", hostWord(p, "h1"), slices.Sorted(maps.Keys(f.daemons)))
	}
	f.mode(1, api.HostActive)
	if p = f.settle(t); !p.Done || len(f.daemons) != 7 {
		t.Errorf("%v, daemons %v", p.Status.Reasons, slices.Sorted(maps.Keys(f.daemons)))
	}
}

// The same plan on a view with another mode says whether it could be had, and nothing is changed by asking.
func TestMaintenance_hypothetical(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	word := func(host int) string {
		v := f.view()
		v.Hosts[host-1].Spec.Mode = api.HostMaintenance
		system, err := f.driver.Observe(t.Context(), v, f)
		if err != nil {
			t.Fatal(err)
		}
		v.System = system
		return hostWord(f.planAt(v, f.now), v.Hosts[host-1].Name)
	}
	if w := word(2); strings.HasPrefix(w, "Refuse") || w == "" {
		t.Errorf("a host that may: %q", w)
	}
	f.broken["c-osd-0"] = true
	f.settle(t)
	if w := word(2); !strings.HasPrefix(w, "Refuse: cannot stop its OSDs (down already: osd.0 on h1)") {
		t.Errorf("a host that may not: %q", w)
	}
	if w := word(1); strings.HasPrefix(w, "Refuse") {
		t.Errorf("the host of the OSD that is down: %q", w)
	}
}

// An agent that is silent is told nothing: when it hears of it, it may not be safe any more.
func TestMaintenance_silentAgent(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.mode(3, api.HostMaintenance)
	f.hosts[2].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	if steps := f.steps(t); len(steps) != 0 {
		t.Errorf("%v", steps)
	}
	if w := hostWord(f.settle(t), "h3"); w != "Wait: agent disconnected; its daemons will be stopped when it reconnects" {
		t.Errorf("%q", w)
	}
	// When it is the machine that is down, its OSD is not to be marked out.
	f.broken["c-osd-2"] = true
	if f.settle(t); !slices.Equal(f.ceph.Noout(), []int{2}) {
		t.Errorf("noout %v", f.ceph.Noout())
	}
}

// No flag outlives what it was set for: not the Host, and not an OSD that never comes back.
func TestMaintenance_leavesNoFlag(t *testing.T) {
	for name, after := range map[string]func(f *fakeWorld){
		"the host is gone": func(f *fakeWorld) { f.hosts = f.hosts[:2] },
		"its OSD fails":    func(f *fakeWorld) { f.mode(3, api.HostActive); f.broken["c-osd-2"] = true },
		"its agent is disconnected for long": func(f *fakeWorld) {
			f.mode(3, api.HostActive)
			f.hosts[2].Status.Conditions = []metav1.Condition{{
				Type: api.HostAgentConnected, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(f.now.Add(-waits.Default().OSDBack - time.Second)),
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			f.mode(3, api.HostMaintenance)
			if f.settle(t); !slices.Equal(f.ceph.Noout(), []int{2}) {
				t.Fatalf("noout %v", f.ceph.Noout())
			}
			after(f)
			for range 4 { // agents of hosts that are gone or silent do nothing
				f.round(t)
				if name == "its OSD fails" {
					f.agents()
				}
			}
			if got := f.ceph.Noout(); len(got) != 0 {
				t.Errorf("noout %v", got)
			}
		})
	}
}

// Of a host that is said to be off the plan still waits until Ceph sees it down and keeps its OSDs in.
func TestMaintenance_offline(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.mode(3, api.HostMaintenance)
	f.hosts[2].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	word := func(answers bool) string {
		v := f.view()
		v.SetHostOff("h3")
		system, err := f.driver.Observe(t.Context(), v, f)
		if err != nil {
			t.Fatal(err)
		}
		if v.System = system; !answers {
			v.System = &Observation{Error: "no answer"}
		}
		return hostWord(f.planAt(v, f.now), "h3")
	}
	if w := word(true); w != "Wait: agent disconnected, and Ceph still reports its OSDs as up" {
		t.Errorf("while it is up: %q", w)
	}
	f.broken["c-osd-2"], f.broken["c-mon-c"] = true, true
	f.agents()
	if w := word(true); w != "Wait: setting noout for osd.2" {
		t.Errorf("before the flag is set: %q", w)
	}
	if w := word(false); w != "Wait: waiting for Ceph: it does not answer, and noout may be needed" {
		t.Errorf("while Ceph does not answer: %q", w)
	}
	if f.settle(t); word(true) != "" {
		t.Errorf("in the end: %q", word(true))
	}
}
