package ceph

import (
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/engine"
)

// What moves no data is no change of where it belongs.
func TestOSDMap_placement(t *testing.T) {
	a := osdMap{Epoch: 1, Crush: 2}
	b := a
	if b.Epoch = 9; a.placement() != b.placement() {
		t.Error("the epoch alone")
	}
	if b.Crush = 3; a.placement() == b.placement() {
		t.Error("another CRUSH map")
	}
}

// After an OSD has come or left, the placement groups look clean until the mgr reports anew.
func TestStatus_awaitsReports(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	now := testTime
	f.driver.Now = func() time.Time { return now }
	f.driver.Forget("default", "c") // the next connection goes by the new clock
	f.round(t)
	f.nodes[0].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-11")
	var p *engine.Plan
	for range 20 {
		f.agents()
		p = f.round(t)
	}
	if p.Done || len(p.Status.Reasons) != 1 || !contains(p.Status.Reasons, "waiting for the mgr to report placement groups") || p.Recheck == 0 {
		t.Fatalf("done %v, recheck %v: %v", p.Done, p.Recheck, p.Status.Reasons)
	}
	now = now.Add(8 * time.Second)
	if p = f.round(t); !p.Done {
		t.Errorf("later: %v", p.Status.Reasons)
	}
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.System.(*Observation).PGsOld = true
	if p = f.planAt(v, f.now); !p.Done {
		t.Errorf("a cluster that is well is called degraded: %v", p.Status.Reasons)
	}
}
