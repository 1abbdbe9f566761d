package placing

import (
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What the mgr has reported counts only from when it can be about the map that there is now.
func TestPlacing(t *testing.T) {
	testTime := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var p Since
	p.Note("a", testTime)
	p.Note("a", testTime.Add(time.Second))
	if p.Recent(testTime.Add(time.Second), time.Minute) {
		t.Error("the first map that is read is a change")
	}
	p.Note("b", testTime.Add(2*time.Second))
	if !p.Recent(testTime.Add(9*time.Second), 8*time.Second) || p.Recent(testTime.Add(10*time.Second), 8*time.Second) {
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
		c := &api.StorageCluster{Spec: api.StorageClusterSpec{Ceph: &api.CephSpec{Config: tt.config}}}
		if got := ReportAge(c); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.config, got, tt.want)
		}
	}
}
