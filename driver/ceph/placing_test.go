package ceph

import (
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// What the mgr has reported counts only from when it can be about the map that there is now.
func TestPlacing(t *testing.T) {
	var p placing
	p.note("a", testTime)
	p.note("a", testTime.Add(time.Second))
	if p.recent(testTime.Add(time.Second), time.Minute) {
		t.Error("the first map that is read is a change")
	}
	p.note("b", testTime.Add(2*time.Second))
	if !p.recent(testTime.Add(9*time.Second), 8*time.Second) || p.recent(testTime.Add(10*time.Second), 8*time.Second) {
		t.Error("a change is not recent for 8 s")
	}
}

func TestReportAge(t *testing.T) {
	for _, tt := range []struct {
		config map[string]api.CephOptions
		want   time.Duration
	}{
		{nil, 8 * time.Second},
		{map[string]api.CephOptions{"global": {"mgr_stats_period": "1", "mgr_tick_period": "1"}}, 3 * time.Second},
		{map[string]api.CephOptions{"global": {"mgr_stats_period": "1"}, "mgr": {"mgr_stats_period": "3s"}}, 6 * time.Second},
		{map[string]api.CephOptions{"mgr": {"mgr_stats_period": "often"}}, 8 * time.Second},
	} {
		if got := reportAge(&api.StorageCluster{Spec: api.StorageClusterSpec{Ceph: &api.CephSpec{Config: tt.config}}}); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.config, got, tt.want)
		}
	}
}

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
