package ceph

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// pull has a disk fail and go: its OSD ends, and a new disk is there instead.
func (f *fakeWorld) pull(host int, id, fresh string) {
	for name, d := range f.daemons {
		if placeOf(d).device == id {
			f.broken[name] = true
		}
	}
	h := &f.hosts[host-1]
	h.Status.Devices = slices.DeleteFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id })
	h.Status.Devices = append(h.Status.Devices, api.Device{ID: fresh, Path: "/dev/sdz", Availability: api.DeviceAvailable})
	f.agents()
}

// The OSD on the disk that is named in the place of one that failed has its number, whatever else there is to number.
func TestReplace_keepsTheNumber(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	was := f.daemons["c-osd-2"].Spec.Parameters[ParamOSDUUID]
	f.pull(2, "wwn-20", "wwn-2x")
	f.nodes[1].Spec.Devices = []string{"wwn-2x", "wwn-21"}
	want := []string{"Stopped osd.2", "osd destroy osd.2", "osd new osd.2", "Prepared osd.2", "Running osd.2"}
	if diff := cmp.Diff(want, f.steps(t)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	p := f.settle(t)
	d := f.daemons["c-osd-2"]
	if !p.Done || len(f.ceph.OSDs()) != 8 || placeOf(d).device != "wwn-2x" || d.Spec.Parameters[ParamOSDUUID] == was || drains(d) {
		t.Errorf("OSDs %v, %v, %v", f.ceph.OSDs(), placeOf(d), decisions(p))
	}
}

// Data that is out of reach without the OSD that failed may be on it alone: it stays, and the new disk gets a number of its own.
func TestReplace_lastCopy(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.pull(2, "wwn-20", "wwn-2x")
	f.nodes[1].Spec.Devices = []string{"wwn-2x", "wwn-21"}
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := v.System.(*Observation)
	o.PGsActive--
	p := f.driver.Plan(v, f.now)
	if len(p.Commands) > 0 || !contains(decisions(p, api.VerdictWait), "it takes the number of osd.2, which failed and goes first") {
		t.Errorf("%v", decisions(p))
	}
	o.Checks = []api.HealthCheck{{Code: "PG_AVAILABILITY", Message: "Reduced data availability: 1 pg inactive"}}
	if p = f.driver.Plan(v, f.now); !contains(daemonNames(p), "c-osd-8@h2=Prepared") || contains(decisions(p), "osd destroy") {
		t.Errorf("%v %v", daemonNames(p), decisions(p))
	}
}

// A disk that works is drained as ever, also when another one is named in its place.
func TestReplace_workingDisk(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	h := &f.hosts[1]
	h.Status.Devices = append(h.Status.Devices, api.Device{ID: "wwn-2x", Path: "/dev/sdz", Availability: api.DeviceAvailable})
	f.nodes[1].Spec.Devices = []string{"wwn-2x", "wwn-21"}
	if steps := f.steps(t); slices.Contains(steps, "osd destroy osd.2") || !slices.Contains(steps, "osd purge osd.2") {
		t.Error(steps)
	}
}

// A group replaces a disk in the same way.
func TestReplace_byGroup(t *testing.T) {
	f := grouped(nil)
	f.settle(t)
	f.pull(2, "wwn-20", "wwn-2x")
	f.groups[0].Spec.Exclude, f.groups[0].Spec.Take = []string{"wwn-20"}, []string{"wwn-2x"}
	f.settle(t)
	if d := f.daemons["c-osd-2"]; d == nil || placeOf(d).device != "wwn-2x" || f.groups[0].Status.Taken != 6 {
		t.Errorf("%s %+v", f.osdPlaces(), f.groups[0].Status)
	}
}
