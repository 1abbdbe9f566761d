package gluster

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// clearLeftovers removes the directories of bricks that a volume does not use any more, when all that it has of the volume is
// well without them. Those of volumes that nobody knows are left alone.
func (p *planner) clearLeftovers() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.declared.DeletionTimestamp != nil ||
			v.pool.State != glusterd.VolumeStarted || sets.Unsound(v.pool) != "" || p.changes(v) {
			continue
		}
		for _, n := range p.nodes {
			for _, s := range n.stores {
				p.clearStore(v, n, s)
			}
		}
	}
}

func (p *planner) clearStore(v *volume, n *node, s *store) {
	if !n.running() || s.Problem != "" || n.leaving != "" && !p.inPool(n) {
		return
	}
	for _, b := range s.Bricks {
		used := slices.ContainsFunc(v.pool.Bricks, func(x glusterd.Brick) bool { return p.nodeOf(&x) == n && x.Path == b.Path })
		if b.Volume == v.pool.ID && !used && !taken(v, n, b.Path) {
			// It is a copy of what the volume has elsewhere: no data goes with it.
			p.drop(n, b, api.RiskNone, fmt.Sprintf("volume %s does not use it any more, and all of the volume is "+
				"healthy", v.name))
		}
	}
}

// leftovers says whether a node has directories of bricks that a volume does not use any more, and that can be removed.
func (p *planner) leftovers(n *node) bool {
	return n.running() && slices.ContainsFunc(n.stores, func(s *store) bool { return s.Problem == "" && p.leftover(n, s) })
}

// leftover says whether there is such a directory in a store.
func (p *planner) leftover(n *node, s *store) bool {
	return slices.ContainsFunc(s.Bricks, func(b glusterd.StoredBrick) bool {
		return slices.ContainsFunc(p.volumes, func(v *volume) bool {
			if v.declared == nil || v.pool == nil || v.pool.ID != b.Volume || taken(v, n, b.Path) {
				return false
			}
			return !slices.ContainsFunc(v.pool.Bricks, func(x glusterd.Brick) bool {
				return p.nodeOf(&x) == n && x.Path == b.Path
			})
		})
	})
}

// changes says whether the plan asks for something of a volume, but for starting what is down of it.
func (p *planner) changes(v *volume) bool {
	for _, c := range p.plan.Commands {
		if c.Object == v.name && c.Verb != glusterd.VerbStart {
			return true
		}
	}
	return false
}
