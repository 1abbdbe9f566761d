package sets

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Count adds to a status what a report on the pool has: peers that are connected, volumes, bricks, and what they heal.
func Count(r *glusterd.Report, s *api.GlusterFSStatus) {
	s.Volumes = int32(len(r.Pool.Volumes))
	for _, x := range r.Peers {
		if x.Connected {
			s.PeersConnected++
		}
	}
	for _, v := range r.Pool.Volumes {
		most := int64(0)
		for _, b := range v.Bricks {
			s.Bricks++
			if b.State == glusterd.BrickOnline {
				s.BricksOnline++
			}
			if b.Heal != nil {
				most = max(most, b.Heal.Pending)
				s.SplitBrains = max(s.SplitBrains, b.Heal.SplitBrain)
			}
		}
		s.Heals += most
	}
}
