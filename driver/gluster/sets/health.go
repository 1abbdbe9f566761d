package sets

import "github.com/holdfast-storage/holdfast/internal/glusterd"

// The words of StorageStatus.health. GlusterFS has none of its own for a pool.
const (
	OK         = "ok"
	Healing    = "healing"
	Degraded   = "degraded"
	SplitBrain = "split-brain"
)

// Health is the health of a pool, by the word of one node.
func Health(r *glusterd.Report) string {
	health := OK
	for _, v := range r.Pool.Volumes {
		for _, b := range v.Bricks {
			if b.Heal != nil && b.Heal.SplitBrain > 0 {
				return SplitBrain
			}
			switch {
			case v.State != glusterd.VolumeStarted:
			case b.State != glusterd.BrickOnline || v.Unknown != "" || v.SetSize() > 1 && b.Heal == nil:
				health = Degraded
			case b.Heal != nil && b.Heal.Pending > 0 && health == OK:
				health = Healing
			}
		}
	}
	for _, x := range r.Peers {
		if !x.Connected || x.State != glusterd.PeerInCluster {
			return Degraded
		}
	}
	return health
}
