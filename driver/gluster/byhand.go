package gluster

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/drift"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// What somebody did with 'gluster' by hand is told with the reason ChangedOutside. It is put back
// where no data is concerned.

// start has a volume started that is declared. Holdfast stops none that is.
func start(p *planner, v *volume) {
	if v.pool.State == glusterd.VolumeStopped && !v.young() {
		p.outside[glusterd.VerbStart+" "+v.name] = true
		p.command(glusterd.VerbStart, v.name, nil, api.RiskNone, "the volume was stopped outside Holdfast: started again")
		return
	}
	state := strings.ToLower(v.pool.State)
	p.command(glusterd.VerbStart, v.name, nil, api.RiskNone, "the volume is declared, and %s", state)
}

// probe takes a node into the pool, or back into it.
func probe(p *planner, n *node) {
	if !wasMember(p, n) {
		p.command(glusterd.VerbProbe, n.address, nil, api.RiskNone, "node %s is not in the pool", n.name)
		return
	}
	p.outside[glusterd.VerbProbe+" "+n.address] = true
	p.command(glusterd.VerbProbe, n.address, nil, api.RiskNone,
		"node %s was detached from the pool outside Holdfast: taken into it again", n.name)
}

// wasMember says whether a node was in the pool by the last status, or is being taken back into it.
func wasMember(p *planner, n *node) bool {
	if n.Node == nil {
		return false
	}
	if s := p.view.Status; s != nil && slices.Contains(s.Status.StorageNodes, n.name) {
		return true
	}
	return meta.IsStatusConditionFalse(n.Node.Status.Conditions, api.ClusterInSync)
}

// tellPeers names peers that no node is, nor was.
func tellPeers(p *planner) {
	for _, x := range p.speaker.report.Peers {
		known := slices.ContainsFunc(p.nodes, func(n *node) bool {
			same := n.report != nil && n.report.UUID != "" && n.report.UUID == x.UUID
			return same || n.address == x.Address || slices.Contains(x.Others, n.address)
		})
		if known || x.UUID == p.speaker.report.UUID {
			continue
		}
		p.decide(api.VerdictSkip, api.ReasonChangedOutside, "peer/"+x.Address,
			"the pool has peer %s, which is no StorageNode of the cluster: it stays; declare a StorageNode, or take it out with 'gluster peer detach %s'", x.Address, x.Address)
	}
}

// tellStranger tells of a volume that nobody declares: one that was kept when its Volume was
// deleted, or that somebody made.
func tellStranger(p *planner, v *volume) {
	own := func(b glusterd.Brick) bool { return isOwn(p, v, &b) }
	if v.pool == nil || slices.ContainsFunc(v.pool.Bricks, own) {
		p.decide(api.VerdictSkip, api.ReasonNotManaged, v.object(),
			"undeclared volume of the pool: left alone, except for bricks that must move")
		return
	}
	p.decide(api.VerdictSkip, api.ReasonChangedOutside, v.object(), "this volume was made outside Holdfast: it is "+
		"left alone, except for bricks that must move; declare a Volume of its name to have Holdfast manage it")
}

// isOwn says whether a brick has a path that Holdfast gives to bricks of a volume, as far as its store is known.
func isOwn(p *planner, v *volume, b *glusterd.Brick) bool {
	s := p.storeOf(b)
	return s == nil || drift.Own(v.name, s.Path, b.Path)
}

// compareBricks finds the bricks that were removed outside Holdfast, unless a user has accepted that.
func compareBricks(p *planner, v *volume) {
	_, v.removed = drift.Bricks(v.was, bricksNow(p, v), false)
	if d := v.declared; len(v.removed) > 0 && api.LossAccepted(d) && d.Status.Lost == drift.ID(v.removed) {
		why, _ := drift.RemovedText(v.name, v.removed)
		p.decide(api.VerdictDo, api.ReasonLossAccepted, v.object(), "loss accepted (%s): %s", api.AnnotationRecreate, why)
		v.left, v.removed = v.removed, nil
	}
	for _, b := range v.was {
		if b.Membership == drift.Left && isLeft(p, v, &b) {
			v.left = append(v.left, b)
		}
	}
	for i := range v.left {
		v.left[i].Membership, v.left[i].Message = drift.Left, "it does not belong to the volume any more: left alone"
	}
}

// isLeft says whether a directory that was a brick of a volume is still there, as far as anybody
// knows, and is none of it again.
func isLeft(p *planner, v *volume, b *api.VolumeBrick) bool {
	n, s := p.nodeNamed(b.Node), p.storeNamed(b.Node, b.Path)
	again := slices.ContainsFunc(v.pool.Bricks, func(x glusterd.Brick) bool {
		return x.Path == b.Path && p.nodeOf(&x) == n
	})
	return !again && (n == nil || !n.running() || s == nil || !s.lost(b.Path))
}

// taken says whether somebody took a brick from a volume outside Holdfast: what is in it may be nowhere else.
func taken(v *volume, n *node, path string) bool {
	return slices.ContainsFunc(slices.Concat(v.removed, v.left), func(b api.VolumeBrick) bool {
		return b.Path == path && b.Node == n.name
	})
}

// bricksNow are the bricks that the pool has of a volume.
func bricksNow(p *planner, v *volume) (now []drift.Brick) {
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		names := []string{b.Address}
		if n := p.nodeOf(b); n != nil {
			names = append(names, n.name)
		}
		for _, was := range v.was { // its node is not known any more
			if was.Path == b.Path && (p.nodeNamed(was.Node) == nil || p.nodeNamed(was.Node).address == b.Address) {
				names = append(names, was.Node)
			}
		}
		now = append(now, drift.Brick{Path: b.Path, Names: names, Own: isOwn(p, v, b)})
	}
	return now
}

// keepBricks says in the status which bricks were added and removed outside Holdfast.
func keepBricks(p *planner, v *volume) {
	d := v.declared
	are, _ := drift.Bricks(v.was, bricksNow(p, v), d.Status.ObservedGeneration != d.Generation)
	var added []api.VolumeBrick
	for i := range are {
		if v.status.Bricks[i].Membership = are[i]; are[i] == drift.Added {
			added = append(added, v.status.Bricks[i])
		}
	}
	v.status.Bricks = slices.Concat(v.status.Bricks, v.removed, v.left)
	if len(added) > 0 && len(v.removed) == 0 {
		p.decide(api.VerdictSkip, api.ReasonChangedOutside, v.object(),
			"added to the volume outside Holdfast: %s; Holdfast uses them; raise spec.size to what the volume has to accept them", drift.Names(added))
	}
}

// awaitBricks leaves a volume as it is of which bricks were removed: its data may be concerned.
// What is left of it goes on to serve.
func awaitBricks(p *planner, v *volume) {
	p.record(v)
	p.describe(v)
	why, next := drift.RemovedText(v.name, v.removed)
	p.await(v, api.ReasonChangedOutside, "%s; %s", why, next)
	v.waits = words.Cut(v.waits, maxText)
	if v.pool.State != glusterd.VolumeStarted {
		start(p, v)
		return
	}
	p.startBricks(v)
	p.askHeal(v)
}

// leaveOut has the status name no bricks that the plan takes out of a volume.
func leaveOut(p *planner, v *volume, names []string) {
	v.status.Bricks = slices.DeleteFunc(v.status.Bricks, func(b api.VolumeBrick) bool {
		n := p.nodeNamed(b.Node)
		return slices.Contains(names, b.Node+":"+b.Path) || n != nil && slices.Contains(names, n.address+":"+b.Path)
	})
}
