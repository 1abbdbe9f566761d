package figures

import (
	"encoding/json"
	"testing"
	"time"
)

// moving is what Ceph 16 says while an OSD is out.
const moving = `{
  "pgs_by_state": [
    {"state_name": "active+remapped+backfilling", "count": 3}, {"state_name": "active+clean", "count": 30}],
  "num_pgs": 33, "num_pools": 2, "num_objects": 1000, "data_bytes": 4194304000,
  "bytes_used": 13000000000, "bytes_avail": 87000000000, "bytes_total": 100000000000,
  "misplaced_objects": 600, "misplaced_total": 3000, "misplaced_ratio": 0.2,
  "degraded_objects": 10, "degraded_total": 3000, "degraded_ratio": 0.0033,
  "recovering_objects_per_sec": 20, "recovering_bytes_per_sec": 83886080, "recovering_keys_per_sec": 0,
  "read_bytes_sec": 1024, "write_bytes_sec": 4096, "read_op_per_sec": 1, "write_op_per_sec": 2}`

func parse(t *testing.T, text string) *PGMap {
	t.Helper()
	m := &PGMap{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFigures(t *testing.T) {
	now := time.Unix(1000, 5)
	f := parse(t, moving).Figures(now)
	if f.Time.Unix() != 1000 || f.UsedPercent != 13 || f.AvailableBytes != 87e9 || f.Objects != 1000 {
		t.Errorf("%+v", f)
	}
	if f.PlacementGroups[0].State != "active+clean" || f.PlacementGroups[1].Count != 3 {
		t.Errorf("%+v", f.PlacementGroups)
	}
	if io := f.ClientIO; io.ReadBytesPerSecond != 1024 || io.WriteBytesPerSecond != 4096 || io.ReadsPerSecond != 1 ||
		io.WritesPerSecond != 2 {
		t.Errorf("%+v", io)
	}
	r := f.Recovery
	if r.SecondsLeft != 31 || r.TotalCopies != 3000 || r.MisplacedCopies != 600 || r.DegradedCopies != 10 {
		t.Errorf("%+v", r)
	}
}

// TestFigures_end: an end is not estimated while nothing is copied, and there is no recovery where
// nothing is amiss.
func TestFigures_end(t *testing.T) {
	m := parse(t, moving)
	m.RecoveredObjects, m.RecoveredBytes = 0, 0
	if r := m.Figures(time.Now()).Recovery; r.SecondsLeft != 0 || r.MisplacedCopies != 600 {
		t.Errorf("%+v", r)
	}
	m.Degraded, m.Misplaced = 0, 0
	if r := m.Figures(time.Now()).Recovery; r != nil {
		t.Errorf("%+v", r)
	}
	if f := (&PGMap{NumPGs: 8}).Figures(time.Now()); f != nil {
		t.Errorf("a mgr that has not reported: %+v", f)
	}
}
