package gluster

import (
	"cmp"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// deleteVolume takes a volume away, and under DeletionWipe its bricks. One that is kept is stopped, and stays in the pool: a
// Volume of the same name and layout takes it over again.
func (p *planner) deleteVolume(v *volume) {
	wipe := v.declared.Spec.DeletionPolicy == api.DeletionWipe
	v.status.State = api.ResourceDeleting
	exports := p.nfs.Exporters(func(e *api.NFSExport) bool { return e.Spec.Volume == v.name && e.Status.ExportID != 0 })
	switch {
	case len(exports) > 0:
		p.await(v, api.ReasonInUse, "being deleted: it is exported by NFS: delete NFSExport %s first", words.Few(exports))
	case !p.ready() && (len(v.status.Bricks) > 0 || !p.neverUp()):
		p.await(v, api.ReasonNotAnswering, "being deleted: the pool does not answer")
	case wipe && v.pool != nil && dropLost(p, v):
	case v.pool != nil && (wipe || v.pool.State == glusterd.VolumeStarted):
		p.endVolume(v, wipe)
	case wipe && !p.wiped(v):
	default:
		p.plan.LetGo(v.declared)
		return
	}
	v.status.Message = words.Cut(cmp.Or(p.failed(v), v.waits), maxText)
	p.plan.PutResource(v.declared, v.next())
}

func (p *planner) endVolume(v *volume, wipe bool) {
	risk := api.RiskRedundancy
	if wipe {
		risk = api.RiskData
	}
	if v.pool.State == glusterd.VolumeStarted {
		p.command(glusterd.VerbStop, v.name, map[string]string{glusterd.ParamVolumeID: v.pool.ID}, risk, "the Volume was deleted")
	}
	if wipe {
		p.describe(v)
		p.command(glusterd.VerbDelete, v.name, map[string]string{glusterd.ParamVolumeID: v.pool.ID}, risk, "the Volume was deleted (deletionPolicy Wipe)")
	}
}

// wiped has the bricks of a deleted volume removed, and says whether none is left.
func (p *planner) wiped(v *volume) bool {
	left := 0
	for _, b := range v.status.Bricks {
		n, s := p.nodeNamed(b.Node), p.storeNamed(b.Node, b.Path)
		switch {
		case n == nil:
			p.decide(api.VerdictSkip, api.ReasonKeptAsIs, v.object(), "brick %s of node %s is left: the node is gone", b.Path, b.Node)
		case !n.running():
			left++
			p.await(v, api.ReasonAgentDisconnected, "deletion waits: node %s with brick %s is disconnected", b.Node, b.Path)
		case s != nil && s.Problem == "" && !s.lost(b.Path) && v.isOther(s.stored(b.Path).Volume):
			p.decide(api.VerdictSkip, api.ReasonNotManaged, v.object(), "brick %s of node %s stays: it holds another volume now", b.Path, b.Node)
		case s != nil && !s.lost(b.Path) && s.Problem == "":
			left++
			p.drop(n, s.stored(b.Path), api.RiskData, "its volume was deleted (deletionPolicy Wipe)")
		}
	}
	return left == 0
}

// isOther says whether an identity is that of another volume than the one that was recorded.
func (v *volume) isOther(id string) bool {
	return id != "" && v.declared.Status.ID != "" && id != v.declared.Status.ID
}

func (s *store) stored(path string) glusterd.StoredBrick {
	i := slices.IndexFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == path })
	return s.Bricks[i]
}

func (p *planner) drop(n *node, b glusterd.StoredBrick, risk api.Risk, why string) {
	p.commandOf(n, glusterd.VerbDropBrick, b.Path, map[string]string{glusterd.ParamVolumeID: b.Volume}, risk, "%s", why)
}
