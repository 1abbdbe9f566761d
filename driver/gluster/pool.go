package gluster

import (
	"cmp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// chooseSpeaker chooses the node that reports on the pool and is given its commands. It stays the same as long as it can.
func (p *planner) chooseSpeaker() {
	var able []*node
	for _, n := range p.nodes {
		if n.running() {
			able = append(able, n)
		}
	}
	rank := func(n *node) int {
		rank := 0
		if p.hadPool(n) {
			rank += 4 // who knows of a pool speaks for it: one that is new, or lost its state, knows of none
		}
		if n.leaving == "" && p.hosts[n.hostName()].ModeOf() == api.HostActive {
			rank += 2
		}
		if n.daemon.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool {
			rank++
		}
		if n.report.Outdated {
			rank -= 2 // it is restarted soon
		}
		if n.daemon.Status.ObservedGeneration != n.daemon.Generation && n.daemon.Status.Message != "" {
			rank -= 3 // its agent cannot do what is asked of it, and may be kept from reporting by that
		}
		return rank
	}
	slices.SortStableFunc(able, func(a, b *node) int { return cmp.Compare(rank(b), rank(a)) })
	if len(able) == 0 {
		return
	}
	p.speaker = able[0]
	if speaks(p.speaker) {
		return
	}
	// Until the new one has told of the pool, the old one speaks for it.
	if i := slices.IndexFunc(able, func(n *node) bool { return speaks(n) && p.hadPool(n) }); i > 0 && p.hadPool(p.speaker) {
		p.successor, p.speaker = p.speaker, able[i]
	}
}

// speaks says whether a node's report tells of the pool, and is of the time in which the node is asked for that.
func speaks(n *node) bool {
	return n.report.Pool != nil && n.report.Generation == n.daemon.Generation && n.daemon.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool
}

// ready says whether the pool's own word is there.
func (p *planner) ready() bool { return p.speaker != nil && p.missed() == "" && speaks(p.speaker) }

// missed names a node that is not heard and belonged to a pool that the speaker knows nothing of. Nobody may found a second pool
// beside that one: two pools cannot be joined any more once both have volumes.
func (p *planner) missed() string {
	own := p.speaker.report
	if len(own.Peers) > 0 {
		return ""
	}
	for _, n := range p.nodes {
		if n == p.speaker || n.report == nil || n.running() || !p.hadPool(n) {
			continue
		}
		// One that had no bricks and knows the speaker was let go by it.
		if p.hadBricks(n) || !slices.ContainsFunc(n.report.Peers, func(x glusterd.Peer) bool { return x.UUID == own.UUID }) {
			return n.name
		}
	}
	return ""
}

// hadPool says whether a node had peers or bricks when it was last heard, or was to get some.
func (p *planner) hadPool(n *node) bool { return len(n.report.Peers) > 0 || p.hadBricks(n) }

// hadBricks says whether a node had bricks when it was last heard, or was to get some.
func (p *planner) hadBricks(n *node) bool {
	if n.report.Pool != nil && len(n.report.Pool.Volumes) > 0 {
		return true
	}
	if slices.ContainsFunc(n.report.Stores, func(s glusterd.Store) bool { return len(s.Bricks) > 0 }) {
		return true
	}
	return slices.ContainsFunc(engine.OfKind[*api.Volume](p.view.Resources), func(v *api.Volume) bool {
		return slices.ContainsFunc(v.Status.Bricks, func(b api.VolumeBrick) bool { return b.Node == n.name })
	})
}

// peer is what the speaker says of another node; nil when it does not know it.
func (p *planner) peer(n *node) *glusterd.Peer {
	if !p.ready() {
		return nil
	}
	for i := range p.speaker.report.Peers {
		x := &p.speaker.report.Peers[i]
		if x.Address == n.address || slices.Contains(x.Others, n.address) || n.report != nil && n.report.UUID != "" && x.UUID == n.report.UUID {
			return x
		}
	}
	return nil
}

// inPool says whether a node belongs to the pool and agrees with it.
func (p *planner) inPool(n *node) bool {
	if p.ready() && n == p.speaker {
		return true
	}
	x := p.peer(n)
	return x != nil && x.State == glusterd.PeerInCluster
}

// reached says whether the node's glusterd answers the speaker.
func (p *planner) reached(n *node) bool {
	x := p.peer(n)
	return p.ready() && (n == p.speaker || x != nil && x.Connected && x.State == glusterd.PeerInCluster)
}

// onItsWay says whether a declared node can be expected in the pool soon without anybody doing something.
func (p *planner) onItsWay(n *node) bool {
	switch {
	case n.Node == nil || n.leaving != "" || p.inPool(n) || p.isRejected(n) || len(n.Problems)+len(n.problems) > 0:
		return false
	case n.daemon == nil:
		return n.usable()
	}
	failed := n.daemon.Status.State == api.DaemonFailed || n.daemon.Status.State == api.DaemonBackOff
	return !failed && n.daemon.Spec.State == api.WantRunning && n.Host != nil && n.Host.AgentHeard()
}

// formPool takes the nodes into the pool that are not in it.
func (p *planner) formPool() {
	if !p.ready() {
		return
	}
	for _, n := range p.nodes {
		if n == p.speaker || n.leaving != "" || !n.running() || p.peer(n) != nil || len(n.problems) > 0 || p.hosts[n.hostName()].ModeOf() != api.HostActive {
			continue
		}
		if other := p.otherPool(n); other != "" {
			n.problem("its glusterd belongs to a pool with %s, which is not this one: take it out there (gluster peer detach) or clear the node", other)
			p.decide(api.VerdictRefuse, api.ReasonConflict, n.object(), "%s", n.problems[len(n.problems)-1])
			continue
		}
		probe(p, n)
	}
	tellPeers(p)
	p.raiseOpVersion()
}

// otherPool names a peer of a node's glusterd that is none of ours.
func (p *planner) otherPool(n *node) string {
	for _, x := range n.report.Peers {
		ours := slices.ContainsFunc(p.nodes, func(o *node) bool {
			return o.address == x.Address || slices.Contains(x.Others, o.address) || o.report != nil && o.report.UUID == x.UUID
		})
		if !ours {
			return x.Address
		}
	}
	return ""
}

// raiseOpVersion lets a pool of which all nodes run a newer release use what that can do. There is no way back, so it comes when
// nothing else is going on.
func (p *planner) raiseOpVersion() {
	r := p.speaker.report
	if r.OpVersion == 0 || r.MaxOpVersion <= r.OpVersion || len(p.plan.Commands) > 0 {
		return
	}
	for _, n := range p.nodes {
		if !n.running() || !p.reached(n) || n.report.Version != r.Version || n.report.Outdated {
			return
		}
	}
	for _, v := range r.Pool.Volumes {
		if v.State == glusterd.VolumeStarted && sets.Unsound(&v) != "" {
			return
		}
	}
	p.command(glusterd.VerbOpVersion, itoa(r.MaxOpVersion), nil, api.RiskNone,
		"all nodes run GlusterFS %s, and the pool works as the operating version %d does", r.Version, r.OpVersion)
}

// checkLeavers tells what the nodes that are to go wait for.
func (p *planner) checkLeavers() {
	for _, n := range p.nodes {
		if n.leaving != "" && n.daemon != nil && n.daemon.DeletionTimestamp == nil {
			p.checkLeaver(n)
		}
	}
}

func (p *planner) checkLeaver(n *node) {
	switch bricks := p.bricksOn(n); {
	case p.neverUp():
		n.gone = true
	case !p.ready():
		p.awaitLeaver(n, api.ReasonNotAnswering, "its bricks are unknown yet")
	case len(bricks) > 0:
		p.awaitLeaver(n, api.ReasonMovingData, "bricks that have to move: %s", words.Few(bricks))
	case p.inPool(n) && p.leftovers(n): // one that is rejected, or out of the pool already, takes them along
		p.awaitLeaver(n, api.ReasonRemoving, "removing moved copies from it")
	case n == p.speaker && len(p.members()) > 1:
		p.awaitLeaver(n, api.ReasonHandingOver, "waiting for another node to report on the pool")
	case n == p.speaker:
		n.gone = true
	case p.peer(n) != nil:
		p.awaitLeaver(n, api.ReasonRemoving, "it has no bricks any more and leaves the pool")
	default:
		n.gone = true
	}
}

// neverUp says whether there never was a pool.
func (p *planner) neverUp() bool {
	return !slices.ContainsFunc(p.view.Daemons, func(d api.Daemon) bool { return d.Status.Report != "" || p.seen.Reports[d.Name] != nil })
}

// members are the nodes that belong to the pool.
func (p *planner) members() []*node {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return !p.inPool(n) })
}

// awaitLeaver says what a node that is to go waits for: of its host, where that drains, and of itself.
func (p *planner) awaitLeaver(n *node, reason api.Reason, format string, args ...any) {
	p.decide(api.VerdictWait, reason, p.leaverObject(n), n.leaving+": "+format, args...)
}

func (p *planner) leaverObject(n *node) string {
	if p.hosts[n.hostName()].ModeOf() == api.HostDrain {
		return engine.HostObject(n.hostName())
	}
	return n.object()
}

// bricksOn are the bricks of all volumes on a node, as volume and path.
func (p *planner) bricksOn(n *node) []string {
	var names []string
	for _, v := range p.volumes {
		if v.pool == nil {
			continue
		}
		for i := range v.pool.Bricks {
			if p.nodeOf(&v.pool.Bricks[i]) == n {
				names = append(names, v.name+" ("+v.pool.Bricks[i].Path+")")
			}
		}
	}
	return names
}

// nodeOf is the node that a brick lies on; nil for one that nobody knows.
func (p *planner) nodeOf(b *glusterd.Brick) *node {
	for _, n := range p.nodes {
		if n.daemon != nil && (n.address == b.Address || n.report != nil && n.report.UUID != "" && n.report.UUID == b.UUID) {
			return n
		}
	}
	return nil
}

// storeOf is the store that a brick lies in; nil for one that nobody knows.
func (p *planner) storeOf(b *glusterd.Brick) *store {
	n := p.nodeOf(b)
	if n == nil {
		return nil
	}
	return n.storeAt(b.Path)
}

// storeAt is the store with a path in it: of two, one below the other, the inner one.
func (n *node) storeAt(path string) *store {
	var found *store
	for _, s := range n.stores {
		if s.Path != "" && strings.HasPrefix(path, s.Path+"/") && (found == nil || len(found.Path) < len(s.Path)) {
			found = s
		}
	}
	return found
}

// dismiss lets nodes go that have no bricks any more: first out of the pool, then their glusterd.
func (p *planner) dismiss() {
	for _, n := range p.nodes {
		if n.leaving == "" || n.daemon == nil || n.daemon.DeletionTimestamp != nil {
			continue
		}
		switch {
		case n.gone:
			p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: n.daemon.Name, Reason: n.leaving})
			p.decide(api.VerdictDo, api.ReasonRemoving, "daemon/"+n.daemon.Name, "removed from host %s: %s", n.hostName(), n.leaving)
			if p.hosts[n.hostName()].ModeOf() == api.HostDrain {
				p.decide(api.VerdictWait, api.ReasonRemoving, engine.HostObject(n.hostName()), "its glusterd is removed")
			}
		case p.ready() && n != p.speaker && p.peer(n) != nil && len(p.bricksOn(n)) == 0 && (!p.inPool(n) || !p.leftovers(n)):
			p.command(glusterd.VerbDetach, p.peer(n).Address, nil, api.RiskNone, "%s, and it has no bricks", n.leaving)
		}
	}
}
