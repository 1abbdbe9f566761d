package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	p := f.planAt(v, f.now)
	if len(p.Commands) > 0 || !contains(decisions(p, api.VerdictWait), "it replaces osd.2, which is removed first") {
		t.Errorf("%v", decisions(p))
	}
	o.Checks = []api.HealthCheck{{Code: "PG_AVAILABILITY", Message: "Reduced data availability: 1 pg inactive"}}
	if p = f.planAt(v, f.now); !contains(daemonNames(p), "c-osd-8@h2=Prepared") || contains(decisions(p), "osd destroy") {
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

// A disk whose identity has changed is no disk that is gone: its OSD works, and is not destroyed for another disk.
func TestReplace_otherIdentity(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.device("wwn-20").ID = "serial-X"
	f.hosts[1].Status.Devices = append(f.hosts[1].Status.Devices, api.Device{ID: "wwn-2x", Path: "/dev/sdz", Availability: api.DeviceAvailable})
	f.nodes[1].Spec.Devices = []string{"wwn-2x", "wwn-21"}
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := f.planAt(v, f.now); contains(decisions(p), "which is removed first") || slices.Contains(daemonNames(p), "c-osd-2@h2=Stopped") {
		t.Errorf("%v", decisions(p))
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

// replacement is a world in which the disk of osd.2 failed and another one is named in its place.
func replacement(t *testing.T) *fakeWorld {
	f := withFake(twoDisks())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.pull(2, "wwn-20", "wwn-2x")
	f.nodes[1].Spec.Devices = []string{"wwn-2x", "wwn-21"}
	return f
}

// cutRound runs an orchestration whose leader is killed after so many writes in all; it says how many are left after it.
func (f *fakeWorld) cutRound(t *testing.T, left int) int {
	t.Helper()
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writes := len(p.Daemons) + len(p.Remove) + len(p.Commands)
	if writes > left {
		p = firstWrites(p, left)
	}
	if err := f.apply(t.Context(), v, p); err != nil {
		t.Fatal(err)
	}
	return left - writes
}

// Wherever the leader dies in a replacement, and whatever people make of it then, no number is left behind and none is lost: Ceph has exactly the
// OSDs that have Daemons, and with the new disk still named it has the old number.
func TestReplace_cutAnywhere(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(*fakeWorld)
		osds string
	}{
		"goes on":                   {func(*fakeWorld) {}, "0 1 2 3 4 5 6 7"},
		"the new disk is taken out": {func(f *fakeWorld) { f.nodes[1].Spec.Devices = []string{"wwn-21"} }, "0 1 3 4 5 6 7"},
		"the new disk fails": {func(f *fakeWorld) {
			h := &f.hosts[1]
			h.Status.Devices = slices.DeleteFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == "wwn-2x" })
			f.nodes[1].Spec.Devices = []string{"wwn-21"}
			for name, d := range f.daemons {
				if placeOf(d).device == "wwn-2x" {
					f.broken[name] = true
				}
			}
		}, "0 1 3 4 5 6 7"},
		"the host is drained": {func(f *fakeWorld) { f.mode(2, api.HostDrain) }, "0 1 4 5 6 7"},
		"the node goes":       {func(f *fakeWorld) { f.nodes = slices.Delete(f.nodes, 1, 2) }, "0 1 4 5 6 7"},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := 0; ; cut++ {
				f := replacement(t)
				left := cut
				for range 30 {
					if left = f.cutRound(t, left); left < 0 {
						break
					}
					f.agents()
					f.now = f.now.Add(recheckLater)
				}
				tt.then(f)
				f.settle(t)
				f.now = f.now.Add(time.Minute)
				p := f.settle(t)
				var have []string
				for _, id := range slices.Sorted(maps.Keys(f.ceph.OSDs())) {
					have = append(have, strconv.Itoa(id))
				}
				if got := strings.Join(have, " "); got != tt.osds || !p.Empty() {
					t.Errorf("killed after %d writes: OSDs %s, want %s: %v", cut, got, tt.osds, decisions(p))
				}
				if left >= 0 {
					return
				}
			}
		})
	}
}
