package gluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// isRejected says whether a node belongs to the pool, and the speaker and it do not agree on what the pool is.
func (p *planner) isRejected(n *node) bool {
	x := p.peer(n)
	return n.report != nil && x != nil && x.Connected && x.State != glusterd.PeerInCluster && p.hadBricks(n)
}

// heldBy is a node that a command waits for; nil when there is none. Nothing of the pool is changed while a node is rejected: one that does
// not hear of a change could never catch up. But one that leaves need not: the others take its place in their sets without it, and let it
// go. Single bricks it has to empty itself.
func (p *planner) heldBy(verb string) *node {
	i := slices.IndexFunc(p.nodes, func(n *node) bool {
		return p.isRejected(n) && (n.leaving == "" || verb != glusterd.VerbReplace && verb != glusterd.VerbDetach)
	})
	if i < 0 || verb == glusterd.VerbStart || verb == glusterd.VerbHeal {
		return nil
	}
	return p.nodes[i]
}

// disagrees says that a node is rejected, why as far as that is known, and what can be done.
func (p *planner) disagrees(n *node) string {
	text := fmt.Sprintf("node %s has another pool configuration (Peer Rejected)", n.name)
	leave := "delete its StorageNode: copies of its bricks are made on other nodes, and it leaves the pool"
	if v := p.singleOn(n); v != nil {
		leave = fmt.Sprintf("mend its configuration by hand (gluster/glusterfs#4016): it cannot leave, as it has the only copy of files of volume %s", v.name)
	}
	switch {
	case n.leaving != "":
		return text + ", or to leave it"
	case n.outdated():
		return fmt.Sprintf("%s. It runs GlusterFS %s, and others run %s already: its restart resolves this, and "+
			"waits: %s. Remove that cause; or, if nothing needs data that only this node has, reboot its host; or "+
			"%s", text, n.report.Version, n.report.Installed, cmp.Or(p.kept[n.name], "it has its turn soon"), leave)
	}
	return text + ". If this does not resolve, " + leave
}

// singleOn is a volume of single bricks that has one on a node; nil when there is none.
func (p *planner) singleOn(n *node) *volume {
	for _, v := range p.volumes {
		if v.pool != nil && v.pool.SetSize() == 1 && len(p.bricksOf(v, n)) > 0 {
			return v
		}
	}
	return nil
}

// hold says why a command waits, and of a volume that it does.
func (p *planner) hold(n *node, object string) string {
	text := p.disagrees(n)
	if i := slices.IndexFunc(p.volumes, func(v *volume) bool { return v.name == object }); i >= 0 {
		p.volumes[i].waits = text
	}
	return text
}
