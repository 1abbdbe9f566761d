package gluster

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/place"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// dropLost takes the bricks of a volume that is wiped off nodes that are lost and leave, and says
// whether the deletion waits for that. glusterd deletes no volume while a node of its pool is down,
// and lets no node leave that has bricks (10.3).
func dropLost(p *planner, v *volume) bool {
	lost := lostBricks(p, v)
	if len(lost) == 0 {
		return false
	}
	names := strings.Join(lost, " ")
	p.await(v, api.ReasonRemoving, "being deleted: first the leader gives up its bricks on lost nodes that leave: "+
		"%s", words.Few(lost))
	single := v.pool.SetSize() == 1
	switch params := map[string]string{glusterd.ParamBricks: names, glusterd.ParamForce: "true"}; {
	case single && len(lost) < len(v.pool.Bricks):
		p.command(glusterd.VerbRemoveCommit, v.name, params, api.RiskData, "the Volume is deleted, and %s lost",
			words.Few(lost))
	case !single && v.pool.State != glusterd.VolumeStarted: // no brick of a stopped volume can be replaced
		p.command(glusterd.VerbStart, v.name, nil, api.RiskNone,
			"the Volume is deleted, and %s lost: it is started to give them up", words.Few(lost))
	default:
		replaceLost(p, v, lost, single)
	}
	return true
}

// lostBricks are a volume's bricks on nodes that leave and cannot be reached.
func lostBricks(p *planner, v *volume) (lost []string) {
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		if n := p.nodeOf(b); n != nil && n.leaving != "" && !n.running() && !p.reached(n) {
			lost = append(lost, b.Name())
		}
	}
	return lost
}

// replaceLost puts empty bricks on other nodes in the place of lost ones, or beside them where all
// bricks of single ones are lost.
func replaceLost(p *planner, v *volume, lost []string, single bool) {
	for _, old := range lost {
		found := place.Sets(p.openStores(), []int64{1}, 1, 0)
		if len(found) == 0 {
			p.await(v, api.ReasonInsufficientSpace, "being deleted: no node of the pool can take the place of lost "+
				"brick %s: add a StorageNode", old)
			return
		}
		names, force := p.take(v, found[0])
		if single {
			p.command(glusterd.VerbAddBrick, v.name, brickParams(v, names, force), api.RiskNone,
				"the Volume is deleted, and all of its bricks are lost")
			return
		}
		params := map[string]string{glusterd.ParamOld: old, glusterd.ParamNew: names[0]}
		p.command(glusterd.VerbReplace, v.name, params, api.RiskData, "the Volume is deleted, and brick %s lost", old)
	}
}
