// Package figures reads what Ceph holds and does from the part pgmap of 'status', which the active
// mgr fills. It is pure.
package figures

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/placing"
	"github.com/holdfast-storage/holdfast/engine/figures"
)

// PGMap is the part pgmap of 'status'. Ceph leaves out rates and counts that are zero.
type PGMap struct {
	ByState []struct {
		Name  string `json:"state_name"`
		Count int    `json:"count"`
	} `json:"pgs_by_state"`
	NumPGs         int   `json:"num_pgs"`
	Objects        int64 `json:"num_objects"`
	DataBytes      int64 `json:"data_bytes"`
	BytesTotal     int64 `json:"bytes_total"`
	BytesUsed      int64 `json:"bytes_used"`
	BytesAvailable int64 `json:"bytes_avail"`

	ReadBytes  int64 `json:"read_bytes_sec"`
	WriteBytes int64 `json:"write_bytes_sec"`
	Reads      int64 `json:"read_op_per_sec"`
	Writes     int64 `json:"write_op_per_sec"`

	Degraded       int64 `json:"degraded_objects"`
	DegradedTotal  int64 `json:"degraded_total"`
	Misplaced      int64 `json:"misplaced_objects"`
	MisplacedTotal int64 `json:"misplaced_total"`
	Unfound        int64 `json:"unfound_objects"`

	RecoveredBytes   int64 `json:"recovering_bytes_per_sec"`
	RecoveredObjects int64 `json:"recovering_objects_per_sec"`
}

// mostStates is a bound of the API's schema.
const mostStates = 64

// Figures are the figures as the API has them; nil until the mgr has reported for the first time.
func (m *PGMap) Figures(now time.Time) *api.StorageFigures {
	f := figures.Of(m.BytesTotal, m.BytesUsed)
	if f == nil {
		return nil
	}
	f.Time, f.AvailableBytes = metav1.Time{Time: now.Truncate(time.Second)}, m.BytesAvailable
	f.DataBytes, f.Objects, f.PlacementGroups, f.Recovery = m.DataBytes, m.Objects, m.states(), m.recovery()
	f.ClientIO = &api.ClientIO{
		ReadBytesPerSecond: m.ReadBytes, WriteBytesPerSecond: m.WriteBytes,
		ReadsPerSecond: m.Reads, WritesPerSecond: m.Writes,
	}
	return f
}

// states are the placement groups by state, the most frequent first.
func (m *PGMap) states() (all []api.PlacementGroupCount) {
	for _, s := range m.ByState {
		all = append(all, api.PlacementGroupCount{State: s.Name, Count: int32(s.Count)})
	}
	slices.SortFunc(all, func(a, b api.PlacementGroupCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.State, b.State))
	})
	return all[:min(len(all), mostStates)]
}

// recovery is nil where every object has all copies, each at its place.
func (m *PGMap) recovery() *api.RecoveryFigures {
	if m.Degraded+m.Misplaced+m.Unfound == 0 {
		return nil
	}
	r := &api.RecoveryFigures{
		DegradedCopies: m.Degraded, MisplacedCopies: m.Misplaced, UnfoundObjects: m.Unfound,
		TotalCopies:    max(m.DegradedTotal, m.MisplacedTotal),
		BytesPerSecond: m.RecoveredBytes, ObjectsPerSecond: m.RecoveredObjects,
	}
	if m.RecoveredObjects > 0 {
		r.SecondsLeft = (m.Degraded + m.Misplaced + m.RecoveredObjects - 1) / m.RecoveredObjects
	}
	return r
}

// Count counts the placement groups of which the mgr knows nothing, those that are active, and
// those that are clean.
func (m *PGMap) Count() (unknown, active, clean int) {
	for _, pg := range m.ByState {
		states := strings.Split(pg.Name, "+")
		if slices.Contains(states, "unknown") {
			unknown += pg.Count
		}
		if slices.Contains(states, "active") {
			active += pg.Count
		}
		if placing.IsClean(pg.Name) {
			clean += pg.Count
		}
	}
	return unknown, active, clean
}
