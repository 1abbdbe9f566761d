package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func rackPool(p *api.Pool) { p.Spec.FailureDomain = "rack" }

// Hosts are where their labels say before their OSDs begin, by what all labels say together, and a new pool is spread over racks. At rest
// nothing is asked for it.
func TestLocations(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.at(1, "rack=r1")
	f.at(2, "rack=r2", "datacenter=d1")
	f.at(3, "rack=r3", "datacenter=d1", "region=eu")
	f.host(4, 1)
	f.node(4, "wwn-40")
	f.at(4, "rack=r1", "datacenter=d1")
	f.settle(t)
	want := []string{"h1 in r1 in d1 in eu in default", "h2 in r2 in d1 in eu in default", "h3 in r3 in d1 in eu in default", "h4 in r1 in d1 in eu in default"}
	if diff := cmp.Diff(want, f.ceph.Locations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := f.pool().Status; s.FailureDomain != "rack" || s.State != api.ResourceOnline {
		t.Errorf("%+v", s)
	}
	asked, writes := f.ceph.Calls("osd tree"), f.writes
	if f.settle(t); f.ceph.Calls("osd tree") != asked || f.writes != writes {
		t.Errorf("in a cluster that is well the tree was asked for %d times, and %d things were written", f.ceph.Calls("osd tree")-asked, f.writes-writes)
	}
}

// A host that holds data is not moved by a label, and no pool becomes another one; who wants it moved is told how. A new host comes to its place.
func TestLocations_labelledLater(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	for i := 1; i <= 3; i++ {
		f.at(i, "rack=r"+string(rune('0'+i)))
	}
	p := f.settle(t)
	how := "'holdfast ceph shell -- ceph osd crush move h1 root=default rack=r1'"
	if got := word(decisions(p, api.VerdictSkip), "crush"); !strings.Contains(got, "CRUSH locations differ from the labels: h1, h2, h3;") || !strings.Contains(got, how) || !p.Done {
		t.Errorf("%q, done %v", got, p.Done)
	}
	for i := 4; i <= 6; i++ {
		f.host(i, 1)
		f.node(i, "wwn-"+string(rune('0'+i))+"0")
		f.at(i, "rack=r"+string(rune('0'+i)))
	}
	f.settle(t)
	want := []string{"h1 in default", "h2 in default", "h3 in default", "h4 in r4 in default", "h5 in r5 in default", "h6 in r6 in default"}
	if diff := cmp.Diff(want, f.ceph.Locations()); diff != "" || f.pool().Status.FailureDomain != "host" {
		t.Errorf("%+v (-want +got):\n%s", f.pool().Status, diff)
	}
	f.pools = append(f.pools, *replicated("fresh", 3))
	if f.settle(t); f.pools[1].Status.FailureDomain != "host" {
		t.Errorf("OSDs in no rack would get nothing of a new pool: %+v", f.pools[1].Status)
	}
	for i := 1; i <= 3; i++ {
		f.ask(t, "osd crush move", "name", f.hosts[i-1].Name, "args", []string{"root=default", "rack=r" + string(rune('0'+i))})
	}
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictSkip), "crush"); got != "" || f.pool().Status.FailureDomain != "host" {
		t.Errorf("%q, %+v", got, f.pool().Status)
	}
	f.pool().Spec.FailureDomain = "rack"
	if p := f.round(t); p.Risk() != api.RiskNone || len(p.Commands) == 0 {
		t.Errorf("risk %s: %v", p.Risk(), decisions(p))
	}
	if f.settle(t); !strings.Contains(f.ceph.Pools()[1], "rule holdfast-rack") {
		t.Errorf("%v", f.ceph.Pools())
	}
}

// A pool that is there is not spread over racks while OSDs are in none: all its data would move onto those of a few new hosts.
func TestLocations_stranded(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	for i := 4; i <= 6; i++ {
		f.host(i, 1)
		f.node(i, "wwn-"+strconv.Itoa(i)+"0")
		f.at(i, "rack=r"+strconv.Itoa(i))
	}
	f.pool().Spec.FailureDomain = "rack"
	p := f.settle(t)
	want := "the OSDs of h1, h2, h3 are in no rack and would lose all its data to the others; label these hosts " +
		"('holdfast host label h1 --location rack=NAME') and move them ('holdfast ceph shell -- ceph osd crush move h1 root=default rack=NAME')"
	if got := word(decisions(p, api.VerdictRefuse), "pool/p"); !strings.Contains(got, want) || !strings.Contains(f.ceph.Pools()[0], "rule holdfast-host") {
		t.Errorf("%q, %v", got, f.ceph.Pools())
	}
	for i := 1; i <= 3; i++ {
		f.ask(t, "osd crush move", "name", f.hosts[i-1].Name, "args", []string{"root=default", "rack=r" + strconv.Itoa(i)})
	}
	if f.settle(t); !strings.Contains(f.ceph.Pools()[0], "rule holdfast-rack") {
		t.Errorf("%v", f.ceph.Pools())
	}
}

// OSDs that get nothing of a pool over racks are told of, and have a new pool be spread over hosts, also while they are out.
func TestLocations_outside(t *testing.T) {
	f := poolsOn(3, replicated("p", 3, rackPool))
	for i := 1; i <= 3; i++ {
		f.at(i, "rack=r"+strconv.Itoa(i))
	}
	if got := word(decisions(f.settle(t), api.VerdictSkip), "pool/p"); got != "" {
		t.Errorf("%q", got)
	}
	f.host(4, 1)
	f.node(4, "wwn-40")
	if got := word(decisions(f.settle(t), api.VerdictSkip), "pool/p"); !strings.Contains(got, "OSDs of h4 are in no rack and get no data of pool p") {
		t.Errorf("%q", got)
	}
	f.powerOff(4, 0)
	f.ask(t, "osd out", "ids", []string{"3"})
	f.pools = append(f.pools, *replicated("q", 3))
	if f.settle(t); f.pools[1].Status.FailureDomain != "host" {
		t.Errorf("%+v", f.pools[1].Status)
	}
}

// An OSD that CRUSH has already is not held back by labels, whatever its host is called there, and no bucket is made beside that.
func TestLocations_otherName(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.Put("h1.example.com", "host", "default")
	f.ceph.Adopt("h1.example.com", 0)
	f.ask(t, "osd crush rm", "name", "h1")
	f.at(1, "rack=r1")
	f.at(2, "rack=r2")
	f.ask(t, "osd crush reweight", "name", "osd.1", "weight", 0.0)
	delete(f.daemons, "c-osd-0")
	delete(f.daemons, "c-osd-1")
	p := f.round(t)
	if got := f.daemons["c-osd-0"].Spec.State + f.daemons["c-osd-1"].Spec.State; got != api.WantRunning+api.WantRunning {
		t.Errorf("osd.0 and osd.1 are to be %s: %v", got, decisions(p))
	}
	f.settle(t)
	want := []string{"h1.example.com in default", "h2 in r2 in default", "h3 in default"}
	if diff := cmp.Diff(want, f.ceph.Locations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A rack that CRUSH has by another name is not made a second time: copies in both would be in one.
func TestLocations_twin(t *testing.T) {
	for name, tt := range map[string]struct{ first, second, want string }{
		"all are in it":             {"rack=rack-1", "", "hosts with data have the label rack rack-1, but CRUSH has them in r01: label the hosts with r01, or rename the bucket ('holdfast ceph shell -- ceph osd crush rename-bucket r01 rack-1'); until then no new OSD starts on h4"},
		"another is it by its name": {"rack=rack-1", "rack=r01", ""},
		"nobody is labelled so":     {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(3)
			f.settle(t)
			f.ceph.Put("r01", "rack", "default")
			f.ceph.Put("h1", "host", "r01")
			f.ceph.Put("h2", "host", "r01")
			f.at(1, strings.Fields(tt.first)...)
			f.at(2, strings.Fields(tt.second)...)
			f.at(3, "rack=rack-1") // below the root, where it may stay
			f.host(4, 1)
			f.node(4, "wwn-40")
			f.at(4, "rack=rack-1")
			got := word(decisions(f.settle(t), api.VerdictRefuse), "crush")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%q", got)
			}
			if made := slices.Contains(f.ceph.Locations(), "h4 in rack-1 in default"); made != (tt.want == "") {
				t.Errorf("%v", f.ceph.Locations())
			}
		})
	}
}

// roundDespite is a round in which a command of a verb fails, if there is one, and all others are carried out, as the engine does it.
func (f *fakeWorld) roundDespite(t *testing.T, verb, want string) {
	t.Helper()
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var failures []engine.CommandFailure
	p.Commands = slices.DeleteFunc(p.Commands, func(c engine.Command) bool {
		if c.Verb != verb {
			return false
		}
		if err := f.driver.Perform(t.Context(), v, c, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%s: %v", c.Verb, err)
		} else {
			failures = append(failures, engine.CommandFailure{Command: c, Message: err.Error()})
		}
		return true
	})
	if err := f.apply(t.Context(), v, p); err != nil {
		t.Fatal(err)
	}
	f.failures = failures
}

// No pool waits for OSDs of a host that Ceph would not put where it is to be.
func TestLocations_moveFails(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.host(4, 1)
	f.node(4, "wwn-40")
	f.at(4, "zone=z1")
	f.ceph.WithoutType("zone")
	f.pools = append(f.pools, *replicated("p", 3))
	for range 12 {
		f.agents()
		f.roundDespite(t, verbCrushMove, "type 'zone' does not exist")
		f.now = f.now.Add(recheckSoon)
	}
	if len(f.ceph.Pools()) != 1 || f.daemons["c-osd-3"].Spec.State != api.WantPrepared {
		t.Errorf("%v, osd.3 is to be %s, %v", f.ceph.Pools(), f.daemons["c-osd-3"].Spec.State, f.failures)
	}
}

// What people have made of CRUSH stays: a host comes into a bucket wherever that is, and one is left where its labels say nothing of.
func TestLocations_byHand(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.Put("east", "row", "default")
	f.ceph.Put("r4", "rack", "east")
	f.ceph.Put("p1", "pod", "default")
	f.ceph.Put("h5", "host", "p1")
	f.ceph.Put("h6", "host", "r4")
	for i := 4; i <= 6; i++ {
		f.host(i, 1)
		f.node(i, "wwn-"+string(rune('0'+i))+"0")
	}
	f.at(4, "rack=r4")
	f.at(5, "rack=r5")
	f.at(6, "row=east", "rack=r6")
	p := f.settle(t)
	want := []string{"h4 in r4 in east in default", "h5 in p1 in default", "h6 in r6 in east in default"}
	if diff := cmp.Diff(want, f.ceph.Locations()[3:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := word(decisions(p, api.VerdictSkip), "crush"); !strings.Contains(got, "CRUSH locations differ from the labels: h5;") || len(f.ceph.OSDs()) != 6 {
		t.Errorf("%q, %v", got, f.ceph.OSDs())
	}
}

// A place that cannot be keeps the OSDs of that host from beginning, and nothing else.
func TestLocations_refused(t *testing.T) {
	for name, tt := range map[string]struct{ fourth, fifth, want string }{
		"a rack in two places": {
			"rack=r9 datacenter=d1", "rack=r9 datacenter=d2",
			"rack r9 is in datacenter d1 in the labels of host h4, but in d2 in those of host h5: CRUSH has one bucket of each name",
		},
		"by way of others": {"rack=r9 datacenter=d1 region=eu", "rack=r8 datacenter=d1 region=us", "datacenter d1 is in region eu in the labels of host h4, but in us in those of host h5"},
		"a rack that CRUSH has elsewhere": {
			"rack=r1 datacenter=d1", "rack=r5",
			"CRUSH has rack r1 in root default, but the labels of its hosts put it in datacenter d1: change the labels, or move the bucket with its data " +
				"('holdfast ceph shell -- ceph osd crush move r1 root=default datacenter=d1')",
		},
		"a rack of another root":    {"rack=r7", "rack=r5", "CRUSH has rack r7 in root ssd, but the labels of its hosts put it in root default"},
		"a name of another type":    {"row=r1", "rack=r5", "CRUSH has a rack named r1, but the labels of hosts use the name for a row"},
		"a name of two levels":      {"row=x rack=r9", "rack=x", "x is a row in the labels of host h4, but a rack in those of host h5"},
		"a name of a host":          {"rack=h1", "rack=r5", "CRUSH has a host named h1, but the labels of hosts use the name for a rack"},
		"a name of a host to be":    {"rack=h5", "rack=r5", "CRUSH has a host named h5, but the labels of hosts use the name for a rack"},
		"a name that is an OSD's":   {"rack=osd.1", "rack=r5", "osd.1 is not a valid CRUSH name of a rack: label host h4 with another name"},
		"a host by a taken name":    {"rack=r5", "rack=r5", ""},
		"a name that is the root's": {"rack=default", "rack=r5", "CRUSH has a root named default, but the labels of hosts use the name for a rack"},
	} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(3)
			for i := 1; i <= 3; i++ {
				f.at(i, "rack=r"+string(rune('0'+i)))
			}
			f.settle(t)
			f.ceph.Put("ssd", "root", "")
			f.ceph.Put("r7", "rack", "ssd")
			for i, location := range []string{tt.fourth, tt.fifth} {
				f.host(i+4, 1)
				f.node(i+4, "wwn-"+string(rune('4'+i))+"0")
				f.at(i+4, strings.Fields(location)...)
			}
			f.pools = append(f.pools, *replicated("p", 3))
			p := f.settle(t)
			got := word(decisions(p, api.VerdictRefuse), "crush")
			if tt.want == "" {
				if got != "" || len(f.ceph.Locations()) != 5 {
					t.Errorf("%q, %v", got, f.ceph.Locations())
				}
				return
			}
			if !strings.Contains(got, tt.want) || !strings.Contains(got, "until then no new OSD starts on h4") {
				t.Errorf("refused for %q", got)
			}
			if d := f.daemons["c-osd-3"]; d.Spec.State != api.WantPrepared || len(f.ceph.Pools()) != 1 {
				t.Errorf("osd.3 is to be %s, pools %v", d.Spec.State, f.ceph.Pools())
			}
			if tt.fifth == "rack=r5" && !slices.Contains(f.ceph.Locations(), "h5 in r5 in default") {
				t.Errorf("%v", f.ceph.Locations())
			}
			maps.DeleteFunc(f.hosts[3].Labels, func(label, _ string) bool { return strings.HasPrefix(label, "topology.") })
			if f.settle(t); f.daemons["c-osd-3"].Spec.State != api.WantRunning {
				t.Errorf("osd.3 does not begin when the label is gone")
			}
		})
	}
}

// A new cluster is not begun with labels that contradict each other.
func TestLocations_refusedAtOnce(t *testing.T) {
	f := poolsOn(3)
	f.at(1, "rack=r1", "datacenter=d1")
	f.at(2, "rack=r1", "datacenter=d2")
	if p := f.plan(); !p.Refused || !strings.Contains(word(decisions(p, api.VerdictRefuse), "crush"), "rack r1 is in datacenter d1") {
		t.Errorf("%v", decisions(p))
	}
}

// Labels that contradict each other are nothing to hosts that hold data, and are not judged while Ceph does not answer.
func TestLocations_unanswered(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.at(1, "rack=r1", "datacenter=d1")
	f.at(2, "rack=r1", "datacenter=d2")
	for _, mute := range []bool{false, true} {
		f.ceph.Mute("status", mute)
		if p := f.round(t); p.Status.Ceph.Quorum == nil != mute || word(decisions(p, api.VerdictRefuse), "crush") != "" {
			t.Errorf("mute %v: %v", mute, decisions(p))
		}
	}
}

// A host that is drained, labelled and given back is where its labels say when its OSDs have data again.
func TestLocations_drained(t *testing.T) {
	w := fourHosts()
	w.cluster.Spec.Ceph.Mgr.Count = 1
	f := withFake(w)
	f.settle(t)
	f.mode(4, api.HostDrain)
	f.settle(t)
	f.at(4, "rack=r4")
	f.mode(4, api.HostActive)
	f.device("wwn-40").Availability, f.device("wwn-40").Ceph = api.DeviceAvailable, nil
	f.settle(t)
	if got := f.ceph.Locations(); !slices.Contains(got, "h4 in r4 in default") || len(f.ceph.OSDs()) != 4 {
		t.Errorf("%v, %v", got, f.ceph.OSDs())
	}
}

// What is foreseen of places is what comes.
func TestLocations_foreseen(t *testing.T) {
	f := poolsOn(3, replicated("p", 3, rackPool))
	for i := 1; i <= 3; i++ {
		f.at(i, "rack=r"+string(rune('0'+i)))
	}
	moves := func(got *engine.Projection) (objects []string) {
		for _, s := range got.Steps {
			for _, c := range s.Plan.Commands {
				if c.Verb == verbCrushMove {
					objects = append(objects, c.Object)
				}
			}
		}
		return objects
	}
	if got := engine.Project(f.driver, f.view(), f.now.Add(settleTime)); len(got.Open) > 0 || !slices.Equal(moves(got), []string{"h1, h2, h3"}) {
		t.Errorf("of a new cluster: %v, open %v", moves(got), got.Open)
	}
	f.settle(t)
	f.host(4, 1)
	f.node(4, "wwn-40")
	f.at(4, "rack=r4", "row=w")
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := engine.Project(f.driver, v, f.now); len(got.Open) > 0 || !slices.Equal(moves(got), []string{"h4"}) {
		t.Errorf("of another host: %v, open %v", moves(got), got.Open)
	}
}

// Where copies are spread over racks all hosts of a rack may be in maintenance together, and none of another one beside them.
func TestMaintenance_racks(t *testing.T) {
	f := poolsOn(6, replicated("p", 3, rackPool))
	for i := range 6 {
		f.at(i+1, "rack=r"+strconv.Itoa(i/2))
	}
	f.cluster.Spec.Ceph.Mon.Count = 1
	f.settle(t)
	f.ceph.SpreadOver(nil)
	for _, host := range []int{3, 4} {
		f.mode(host, api.HostMaintenance)
		if p := f.settle(t); hostWord(p, f.hosts[host-1].Name) != "" {
			t.Fatalf("%q", hostWord(p, f.hosts[host-1].Name))
		}
	}
	f.mode(5, api.HostMaintenance)
	if w := hostWord(f.settle(t), "h5"); !strings.HasPrefix(w, "Refuse: cannot stop its OSDs (down already: osd.2 on h3, osd.3 on h4)") {
		t.Errorf("%q", w)
	}
}
