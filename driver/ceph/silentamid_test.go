package ceph

import (
	"slices"
	"strconv"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// threeRacks has six hosts with a disk each, and copies in three racks: h1 and h4, h2 and h5, h3 and h6.
func threeRacks(t *testing.T) *fakeWorld {
	t.Helper()
	w := newWorld(3, 2)
	for i := range 6 {
		w.host(i+1, 1)
		w.node(i+1, "wwn-"+strconv.Itoa(i+1)+"0")
	}
	f := withFake(w)
	for i := range f.hosts {
		f.at(i+1, "rack=r"+strconv.Itoa(i%3))
	}
	w.pools = append(w.pools, *replicated("p", 3, rackPool))
	f.ceph.SpreadOver(nil)
	f.settle(t)
	return f
}

// A host whose agent falls silent before its OSD stops has its turn still: it stops as soon as the agent is heard.
func TestMaintenance_silentAmid(t *testing.T) {
	f := threeRacks(t)
	f.mute["h3"] = true
	f.mode(3, api.HostMaintenance)
	f.settle(t)
	f.silence(3, time.Second)
	f.mode(6, api.HostMaintenance)
	if w := hostWord(f.settle(t), "h6"); w != "Wait: waiting for host h3: only one host at a time may enter maintenance" {
		t.Errorf("%q, with %v on h3", w, f.states("h3"))
	}
	f.powerOn(3)
	if w := hostWord(f.settle(t), "h6"); w != "" || !slices.Contains(f.states("h6"), "osd.5=Stopped") {
		t.Errorf("when h3 has stopped: %q, %v", w, f.states("h6"))
	}
}

// An empty OSD that was told to stop by a drain gets no data while its host is in maintenance, though its agent never heard of it.
func TestDrain_maintenanceAmid(t *testing.T) {
	f := threeRacks(t)
	f.mode(6, api.HostDrain)
	for range 60 {
		if slices.Contains(f.states("h6"), "osd.5=Stopped") {
			break
		}
		f.agents()
		f.mute["h6"] = drains(f.daemons["c-osd-5"])
		f.round(t)
		f.now = f.now.Add(recheckSoon)
	}
	f.silence(6, time.Hour)
	f.mode(6, api.HostMaintenance)
	if f.settle(t); !slices.Contains(f.states("h6"), "osd.5=Stopped") || !f.ceph.Up(5) || f.ceph.Holds(5) {
		t.Errorf("%v, up %v, holds data %v", f.states("h6"), f.ceph.Up(5), f.ceph.Holds(5))
	}
	f.powerOn(6)
	f.mode(6, api.HostActive)
	if f.settle(t); !f.ceph.Up(5) || !f.ceph.Holds(5) {
		t.Errorf("active again: %v, up %v, holds data %v", f.states("h6"), f.ceph.Up(5), f.ceph.Holds(5))
	}
}
