package ceph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
)

// manyNames gives the disk of osd.7 all the names that an entry can use.
func manyNames(t *testing.T) *fakeWorld {
	f := withFake(twoDisks())
	d := f.device("wwn-41")
	d.Serial, d.WWN, d.Links = "SERIAL", "0x5000c41", []string{"/dev/disk/by-id/ata-SERIAL"}
	f.settle(t)
	return f
}

// observation is what the driver sees of Ceph.
func (f *fakeWorld) observation(t *testing.T) *Observation {
	t.Helper()
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.System.(*Observation)
}

func (f *fakeWorld) isIn(t *testing.T, id int) bool { return f.observation(t).OSDs[id].In }

// isKept says whether Ceph keeps a number for another OSD.
func (f *fakeWorld) isKept(t *testing.T, id int) bool {
	_, is := f.observation(t).Destroyed[id]
	return is
}

// unmatched says whether a node tells of an entry that means no device.
func (f *fakeWorld) unmatched(node int) bool {
	return meta.FindStatusCondition(f.nodes[node].Status.Conditions, api.ConditionEntriesMatched) != nil
}

// plugIn puts an empty disk into a host.
func (f *fakeWorld) plugIn(host int, id string) {
	h := &f.hosts[host-1]
	fresh := api.Device{ID: id, Path: "/dev/" + id, Serial: "S" + id, Availability: api.DeviceAvailable}
	h.Status.Devices = append(h.Status.Devices, fresh)
}

// departs takes a disk out of its host.
func (f *fakeWorld) departs(host int, id string) {
	h := &f.hosts[host-1]
	h.Status.Devices = slices.DeleteFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id })
}

// withdrawnSteps are those of an OSD that leaves, and replacedSteps those of one whose number is kept.
var (
	withdrawnSteps = []string{
		"Running osd.7", "osd crush reweight osd.7", "osd out osd.7", "Stopped osd.7", "osd purge osd.7",
	}
	replacedSteps = []string{"Running osd.7", "osd out osd.7", "Stopped osd.7", "osd destroy osd.7"}
)

// A device in exclude leaves as if the node did not name it, whatever the entry calls it, and is
// not used again while it stands there.
func TestLeave_exclude(t *testing.T) {
	for _, entry := range []string{"wwn-41", "SERIAL", "0x5000c41", "5000c41", "/dev/disk/by-id/ata-SERIAL", "/dev/sdc"} {
		f := manyNames(t)
		f.cluster.Spec.DeletionPolicy = api.DeletionWipe
		f.nodes[3].Spec.Exclude = []string{entry}
		if diff := cmp.Diff(withdrawnSteps, f.steps(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", entry, diff)
		}
		p := f.settle(t)
		if !p.Done || f.daemons["c-osd-7"] != nil || len(f.ceph.OSDs()) != 7 || f.unmatched(3) {
			t.Errorf("%s: OSDs %v, %+v, %v", entry, f.ceph.OSDs(), f.nodes[3].Status, decisions(p))
		}
		f.nodes[3].Spec.Exclude = nil
		if f.settle(t); len(f.ceph.OSDs()) != 8 {
			t.Errorf("%s: taken out, it is not used again: %v", entry, f.ceph.OSDs())
		}
	}
}

// Taken out of exclude or replace before it is gone, an OSD gets its weight back, is in, and stays.
func TestLeave_takenOut(t *testing.T) {
	for name, list := range map[string]func(*api.StorageNodeSpec) *[]string{
		"exclude": func(s *api.StorageNodeSpec) *[]string { return &s.Exclude },
		"replace": func(s *api.StorageNodeSpec) *[]string { return &s.Replace },
	} {
		f := manyNames(t)
		weight := f.ceph.Weight(7)
		f.ceph.Stick(7, true)
		*list(&f.nodes[3].Spec) = []string{"SERIAL"}
		if p := f.settle(t); word(decisions(p), "osd.7") != "data moves from osd.7 to other OSDs" {
			t.Fatalf("%s: %v", name, decisions(p))
		}
		*list(&f.nodes[3].Spec) = nil
		p := f.settle(t)
		d := f.daemons["c-osd-7"]
		if !p.Done || drains(d) || memory.Of(d, memory.Replaced) != "" || f.ceph.Weight(7) != weight || !f.isIn(t, 7) {
			t.Errorf("%s: weight %v, in %v, %v", name, f.ceph.Weight(7), f.isIn(t, 7), decisions(p))
		}
	}
}

// A disk that is pulled while its serial number is in exclude is still known: its OSD is not brought back.
func TestLeave_pulled(t *testing.T) {
	f := manyNames(t)
	f.ceph.Stick(7, true)
	f.nodes[3].Spec.Exclude = []string{"SERIAL"}
	f.settle(t)
	f.broken["c-osd-7"] = true
	f.departs(4, "wwn-41")
	if p := f.settle(t); !drains(f.daemons["c-osd-7"]) || f.unmatched(3) {
		t.Errorf("%v", decisions(p))
	}
	f.ceph.Stick(7, false)
	if p := f.settle(t); f.daemons["c-osd-7"] != nil || len(f.ceph.OSDs()) != 7 {
		t.Errorf("OSDs %v, %v", f.ceph.OSDs(), decisions(p))
	}
}

// The number of an OSD in replace is kept until the host's next disk gets it; the old disk is not used again.
func TestLeave_replace(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		f := manyNames(t)
		f.cluster.Spec.DeletionPolicy = policy
		weight := f.ceph.Weight(7)
		f.nodes[3].Spec.Replace = []string{"SERIAL"}
		if diff := cmp.Diff(replacedSteps, f.steps(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if p := f.settle(t); !p.Done || f.daemons["c-osd-7"] != nil || !f.isKept(t, 7) {
			t.Fatalf("%s: %v", policy, decisions(p))
		}
		f.plugIn(4, "new")
		f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "new")
		p := f.settle(t)
		d := f.daemons["c-osd-7"]
		if !p.Done || d == nil || placeOf(d).device != "new" || f.ceph.Weight(7) != weight || !f.isIn(t, 7) {
			t.Errorf("%s: OSDs %v, %v, %v", policy, f.ceph.OSDs(), f.osdPlaces(), decisions(p))
		}
	}
}

// A disk that is named at the same time waits for the number; the old one may be pulled when it is
// empty, and its entry may stay.
func TestLeave_replaceAtOnce(t *testing.T) {
	f := manyNames(t)
	f.plugIn(4, "new")
	f.nodes[3].Spec.Devices, f.nodes[3].Spec.Replace = []string{"wwn-40", "new"}, []string{"SERIAL"}
	f.ceph.Stick(7, true)
	p := f.settle(t)
	waits := word(decisions(p, api.VerdictWait), "node/n4")
	if !strings.Contains(waits, "it replaces osd.7") || len(f.ceph.OSDs()) != 8 {
		t.Fatalf("%v", decisions(p))
	}
	f.departs(4, "wwn-41")
	f.broken["c-osd-7"] = true
	f.ceph.Stick(7, false)
	p = f.settle(t)
	if d := f.daemons["c-osd-7"]; d == nil || placeOf(d).device != "new" || !p.Done {
		t.Errorf("%v, %v", f.osdPlaces(), decisions(p))
	}
}

// Where the others cannot do without the OSD in replace, the new disk gets a number of its own, and
// the old OSD goes after that.
func TestLeave_replaceNoRoom(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.nodes[2].Spec.Devices, f.nodes[2].Spec.Replace = []string{"wwn-30", "wwn-31"}, []string{"wwn-30"}
	p := f.settle(t)
	if d := f.daemons["c-osd-3"]; !p.Done || d == nil || f.daemons["c-osd-2"] != nil || !f.isKept(t, 2) {
		t.Errorf("%v, %v", f.osdPlaces(), decisions(p))
	}
}

// What people change their minds to is done, from wherever an OSD is on its way.
func TestLeave_changedMind(t *testing.T) {
	f := manyNames(t)
	weight := f.ceph.Weight(7)
	f.ceph.Stick(7, true)
	f.nodes[3].Spec.Exclude = []string{"wwn-41"}
	f.settle(t)
	f.nodes[3].Spec.Exclude, f.nodes[3].Spec.Replace = nil, []string{"wwn-41"}
	if p := f.settle(t); f.isIn(t, 7) || f.ceph.Weight(7) != weight {
		t.Errorf("in %v, weight %v: %v", f.isIn(t, 7), f.ceph.Weight(7), decisions(p))
	}
	f.nodes[3].Spec.Exclude, f.nodes[3].Spec.Replace = []string{"wwn-41"}, nil
	f.ceph.Stick(7, false)
	if p := f.settle(t); f.isKept(t, 7) || len(f.ceph.OSDs()) != 7 || !p.Done {
		t.Errorf("OSDs %v: %v", f.ceph.OSDs(), decisions(p))
	}

	f = manyNames(t)
	f.nodes[3].Spec.Replace = []string{"wwn-41"}
	f.settle(t)
	f.nodes[3].Spec.Devices, f.nodes[3].Spec.Replace = []string{"wwn-40"}, nil
	if p := f.settle(t); f.isKept(t, 7) || !p.Done {
		t.Errorf("the number of osd.7 is kept for nobody: %v", decisions(p))
	}
}

// A group keeps the number, too, whatever the entry calls the disk, and also when the disk is pulled meanwhile.
func TestLeave_replaceByGroup(t *testing.T) {
	for _, entry := range []string{"wwn-31", "SERIAL"} {
		f := grouped(nil)
		f.device("wwn-31").Serial = "SERIAL"
		f.settle(t)
		f.ceph.Stick(5, true)
		f.groups[0].Spec.Replace = []string{entry}
		f.settle(t)
		f.departs(3, "wwn-31")
		f.broken["c-osd-5"] = true
		f.ceph.Stick(5, false)
		p := f.settle(t)
		if !f.isKept(t, 5) || f.daemons["c-osd-5"] != nil || f.groups[0].Status.Taken != 5 {
			t.Fatalf("%s: %v, %v", entry, f.osdPlaces(), decisions(p))
		}
		f.plugIn(3, "new")
		f.groups[0].Spec.Take = []string{"Snew"}
		if p = f.settle(t); f.daemons["c-osd-5"] == nil || !p.Done {
			t.Errorf("%s: %v, %v", entry, f.osdPlaces(), decisions(p))
		}
	}
}

// An entry that matches no device is a condition of the resource, and keeps neither it nor the cluster
// from being ready.
func TestLeave_unmatched(t *testing.T) {
	f := manyNames(t)
	f.nodes[3].Spec.Exclude, f.nodes[0].Spec.Replace = []string{"nothing"}, []string{"nothing"}
	p := f.settle(t)
	told := func(object string, p *engine.Plan, conditions []metav1.Condition) {
		t.Helper()
		c := meta.FindStatusCondition(conditions, api.ConditionEntriesMatched)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(api.ReasonDeviceUnavailable) ||
			!meta.IsStatusConditionTrue(conditions, api.NodeAccepted) || reasonOf(p, api.VerdictSkip, object) == "" || !p.Done {
			t.Errorf("%s: %+v, %v", object, conditions, decisions(p))
		}
	}
	told("node/n4", p, f.nodes[3].Status.Conditions)
	told("node/n1", p, f.nodes[0].Status.Conditions)
	f.nodes[3].Spec.Exclude = nil
	if f.settle(t); f.unmatched(3) || len(f.ceph.OSDs()) != 8 {
		t.Errorf("OSDs %v, %+v", f.ceph.OSDs(), f.nodes[3].Status.Conditions)
	}

	g := grouped(func(g *api.DriveGroup) { g.Spec.Exclude = []string{"nothing"} })
	p = g.settle(t)
	told("drivegroup/g", p, g.groups[0].Status.Conditions)
	if s := g.groups[0].Status; s.State != api.ResourceOnline || s.Taken != 6 {
		t.Errorf("%+v", s)
	}
}

// All OSDs with their databases on a disk in replace leave, and get their numbers again with
// another disk for databases.
func TestLeave_replaceDatabases(t *testing.T) {
	f := splitWorld()
	h := f.host(4, 3)
	for i, model := range []string{"hdd", "hdd", "ssd"} {
		h.Status.Devices[i].Model, h.Status.Devices[i].Size = model, resource.MustParse("100Gi")
	}
	f.cluster.Spec.DeletionPolicy = api.DeletionWipe
	f.settle(t)
	f.groups[0].Spec.Replace = []string{"F1"}
	p := f.settle(t)
	if !p.Done || !f.isKept(t, 0) || !f.isKept(t, 1) || f.daemons["c-osd-0"] != nil || f.daemons["c-osd-2"] == nil {
		t.Fatalf("%v, %v", f.osdPlaces(), decisions(p))
	}
	f.departs(1, "ssd-1")
	f.plugIn(1, "ssd-new")
	fresh := f.device("ssd-new")
	fresh.Model, fresh.Size = "ssd", resource.MustParse("100Gi")
	f.groups[0].Spec.Take = []string{"wwn-10", "wwn-11"}
	p = f.settle(t)
	for _, name := range []string{"c-osd-0", "c-osd-1"} {
		if d := f.daemons[name]; !p.Done || d == nil || d.Spec.Host != "h1" || partsOf(d)[0].Of != "ssd-new" {
			t.Errorf("%s: %+v, %v", name, d, decisions(p))
		}
	}
}

// A plan shows all of it before it is done, to the end.
func TestLeave_foreseen(t *testing.T) {
	for name, change := range map[string]func(*api.StorageNodeSpec){
		"exclude": func(s *api.StorageNodeSpec) { s.Exclude = []string{"SERIAL"} },
		"replace": func(s *api.StorageNodeSpec) { s.Replace = []string{"SERIAL"} },
		"another": func(s *api.StorageNodeSpec) { s.Replace, s.Devices = []string{"SERIAL"}, []string{"wwn-40", "new"} },
	} {
		f := manyNames(t)
		f.plugIn(4, "new")
		change(&f.nodes[3].Spec)
		v, _, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shown := engine.Project(f.driver, v, f.now)
		var verbs []string
		for _, s := range shown.Steps {
			for _, c := range s.Plan.Commands {
				verbs = append(verbs, c.Verb+" "+c.Object)
			}
		}
		want := map[string]string{
			"exclude": "osd crush reweight osd.7, osd out osd.7, osd purge osd.7", "replace": "osd out osd.7, osd destroy osd.7",
			"another": "osd out osd.7, osd destroy osd.7, osd new osd.7",
		}[name]
		if got := strings.Join(verbs, ", "); got != want || !shown.Last.Done || len(shown.Open) > 0 {
			t.Errorf("%s: %s, %v, %v", name, got, shown.Open, decisions(shown.Last))
		}
	}
}
