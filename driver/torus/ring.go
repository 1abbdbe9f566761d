package torus

import (
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// everUp says whether any torusd has ever reported, also where its report cannot be read now.
func (p *planner) everUp() bool {
	return slices.ContainsFunc(p.view.Daemons, func(d api.Daemon) bool {
		return d.Spec.Type == torus.TypeTorusd && (d.Status.Report != "" || p.seen.Reports[d.Name] != nil)
	})
}

// chooseSpeaker chooses the node that reports on the cluster and is given its commands: the one that does, as long as it can.
func (p *planner) chooseSpeaker() {
	rank := func(n *node) (r int) {
		if n.leaving == "" && p.hosts[n.host()].ModeOf() == api.HostActive {
			r += 2
		}
		if n.torusd.Spec.Parameters[torus.ParamReport] == torus.DepthCluster {
			r++
		}
		return r
	}
	for _, n := range p.those((*node).running) {
		if p.speaker == nil || rank(n) > rank(p.speaker) {
			p.speaker = n
		}
	}
	if s := p.speaker; s != nil && s.report.Generation == s.torusd.Generation && s.torusd.Spec.Parameters[torus.ParamReport] == torus.DepthCluster {
		p.word = s.report.Cluster
	}
}

// reporter is the node that is asked for reports on the whole cluster: the speaker, or while there is none who was asked last.
func (p *planner) reporter() *node {
	if p.speaker != nil {
		return p.speaker
	}
	for _, n := range p.nodes {
		if n.torusd != nil && n.torusd.Spec.Parameters[torus.ParamReport] == torus.DepthCluster {
			return n
		}
	}
	if all := p.those(func(n *node) bool { return n.torusd != nil || n.usable() }); len(all) > 0 {
		return all[0]
	}
	return nil
}

// peer is what Torus says of a node; nil when it does not know it.
func (p *planner) peer(n *node) *torus.Peer {
	if p.word == nil {
		return nil
	}
	if i := slices.IndexFunc(p.word.Peers, func(x torus.Peer) bool { return x.Address != "" && x.Address == n.url }); i >= 0 {
		return &p.word.Peers[i]
	}
	if n.report == nil {
		return nil
	}
	return p.word.Peer(n.report.UUID)
}

// in says whether Torus says that a node is in a state.
func (p *planner) in(n *node, state torus.PeerState) bool {
	x := p.peer(n)
	return x != nil && x.State == state
}

// planRing makes members of the peers that are heard, and sets how many copies there are.
func (p *planner) planRing() {
	declared := len(p.those(func(n *node) bool { return n.Node != nil }))
	if p.copies() > declared && declared > 0 {
		p.decide(api.VerdictRefuse, api.ReasonInsufficientNodes, "ring", "replication %d needs as many nodes, and %d are declared: declare more nodes, or lower spec.torus.replication",
			p.copies(), declared)
	}
	if p.word == nil {
		return
	}
	joining := p.those(func(n *node) bool {
		return n.leaving == "" && n.running() && len(n.problems) == 0 && p.hosts[n.host()].ModeOf() == api.HostActive && p.in(n, torus.PeerAvail)
	})
	members := p.word.Members()
	switch {
	case len(joining) > 0 && members+len(joining) >= p.copies():
		var peers, names []string
		for _, n := range joining {
			peers, names = append(peers, p.peer(n).UUID), append(names, n.name)
		}
		p.command(torus.VerbPeerAdd, strings.Join(peers, " "), nil, api.RiskNone, "%s joins the ring: %s", words.Plural(len(joining), "node"), words.Few(names))
	case len(joining) > 0:
		p.decide(api.VerdictWait, api.ReasonInsufficientNodes, "ring", "only %d of the %s of each block are connected",
			members+len(joining), words.Plural(p.copies(), "peer"))
	case members > 0 && p.word.Replication != p.copies():
		p.setReplication()
	}
}

func (p *planner) setReplication() {
	have, want := p.word.Replication, p.copies()
	switch ok := p.word.Count(torus.PeerOK); {
	case want > have && p.noRoomFor(want) != "":
		p.decide(api.VerdictRefuse, api.ReasonInsufficientSpace, "ring", "%s", p.noRoomFor(want))
	case ok < want:
		p.decide(api.VerdictWait, api.ReasonInsufficientNodes, "ring", "replication goes from %d to %d when %s are up: %d are", have, want, words.Plural(want, "peer"), ok)
	case want < have:
		p.command(torus.VerbReplication, strconv.Itoa(want), nil, api.RiskRedundancy, "changing replication from %d to %d", have, want)
	default:
		p.command(torus.VerbReplication, strconv.Itoa(want), nil, api.RiskNone, "changing replication from %d to %d", have, want)
	}
}

// planLeavers lets nodes go: their blocks first, one node after the other, and then their daemons.
func (p *planner) planLeavers() {
	turn := ""
	for _, n := range p.those(func(n *node) bool { return n.leaving != "" && p.in(n, torus.PeerAvail) && p.peer(n).Used > 0 }) {
		turn = n.name
	}
	for _, n := range p.those(func(n *node) bool {
		return n.leaving != "" && (n.torusd != nil && n.torusd.DeletionTimestamp == nil || n.etcd != nil)
	}) {
		if p.leave(n, turn) {
			turn = n.name
		}
	}
}

// leave brings a node one step further out, and says whether others have to wait for it.
func (p *planner) leave(n *node, turn string) bool {
	tell := func(verdict api.Verdict, reason api.Reason, format string, args ...any) bool {
		p.decide(verdict, reason, p.leaverObject(n), n.leaving+": "+format, args...)
		return false
	}
	x := p.peer(n)
	switch {
	case p.isMember(n) && !p.begun():
		return tell(api.VerdictRefuse, api.ReasonQuorumAtRisk,
			"it holds a member of the cluster's etcd, which the other nodes expect. Declare the node again or make the host "+
				"active, or delete the cluster, which has no data yet, and declare it again")
	case !p.everUp() && !p.isMember(n):
		p.dismiss(n)
		return false
	case p.isMember(n):
		return tell(api.VerdictRefuse, api.ReasonQuorumAtRisk, "it holds a member of the cluster's etcd, which cannot "+
			"move. Declare the node again or make the host active, and remove a node without a member")
	case p.word == nil:
		return tell(api.VerdictWait, api.ReasonNotAnswering, "its blocks are unknown yet")
	case x == nil && n.report != nil && n.report.UUID != "" && p.word.Replication < 2:
		return tell(api.VerdictWait, api.ReasonWouldLoseData, "its torusd is disconnected, and it may have the only "+
			"copies of blocks: bring it back; if it is lost, raise spec.torus.replication to remove it")
	case x == nil && n.report != nil && n.report.UUID != "" && (p.moving() != "" || p.word.Count(torus.PeerDown) > 0):
		return tell(api.VerdictWait, api.ReasonDataNotClean, "torusd disconnected; the other peers still copy its blocks")
	case x == nil:
		p.dismiss(n)
		return false
	case x.State == torus.PeerAvail && (x.Used > 0 || p.moving() != ""):
		return tell(api.VerdictWait, api.ReasonMovingData, "its blocks move to the other peers: %s are left", torus.SizeText(x.Used))
	case x.State == torus.PeerAvail:
		p.dismiss(n)
		return false
	}
	if against := p.cannotLeave(n, turn); !against.None() {
		return tell(against.Verdict, against.Reason, "%s", against.Message)
	}
	if x.State == torus.PeerDown {
		p.command(torus.VerbPeerForce, x.UUID, nil, api.RiskRedundancy,
			"%s, and its torusd is disconnected: the other peers copy its blocks", n.leaving)
	} else {
		p.command(torus.VerbPeerRemove, x.UUID, nil, api.RiskNone, "%s: its blocks move to the other peers", n.leaving)
	}
	return !tell(api.VerdictWait, api.ReasonMovingData, "it leaves the ring")
}

// cannotLeave says why a member of the ring cannot leave it: not at all, or not yet.
func (p *planner) cannotLeave(n *node, turn string) engine.Objection {
	up, down := p.word.Count(torus.PeerOK), p.word.Count(torus.PeerDown)
	if p.in(n, torus.PeerOK) {
		up--
	} else {
		down--
	}
	copies := max(p.copies(), p.word.Replication)
	switch {
	case up < copies:
		return engine.Refusal(api.ReasonInsufficientNodes,
			"each block is on %s, but without it %s would be up: declare another node first, or lower spec.torus.replication",
			words.Plural(copies, "peer"), words.Plural(up, "peer"))
	case p.noRoom(p.peer(n)) != "":
		return engine.Refusal(api.ReasonInsufficientSpace, "%s", p.noRoom(p.peer(n)))
	case p.in(n, torus.PeerDown) && down+1 >= min(p.copies(), p.word.Replication):
		return engine.Refusal(api.ReasonWouldLoseData, "%s of the ring down, possibly with the only copies of blocks: bring it back first", words.Plural(down+1, "peer"))
	case down > 0:
		return engine.Wait(api.ReasonDataNotClean, "%s of the ring is down", words.Plural(down, "other peer"))
	case turn != "":
		return engine.Wait(api.ReasonOneAtATime, "waiting for node %s to leave", turn)
	case p.moving() != "":
		return engine.Wait(api.ReasonMovingData, "%s", p.moving())
	case len(p.plan.Commands) > 0:
		return engine.Wait(api.ReasonOneAtATime, "waiting for another change of the ring")
	}
	return engine.Objection{}
}

// dismiss removes the daemons of a node that has no blocks.
func (p *planner) dismiss(n *node) {
	n.gone = true
	for _, d := range []*api.Daemon{n.torusd, n.etcd} {
		if d == nil || d.DeletionTimestamp != nil {
			continue
		}
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: n.leaving})
		p.decide(api.VerdictDo, api.ReasonRemoving, "daemon/"+d.Name, "removed from host %s: %s", n.host(), n.leaving)
		if p.hosts[n.host()].ModeOf() == api.HostDrain {
			p.decide(api.VerdictWait, api.ReasonRemoving, engine.HostObject(n.host()), "daemon %s is removed", d.Name)
		}
	}
}

func (p *planner) leaverObject(n *node) string {
	if p.hosts[n.host()].ModeOf() == api.HostDrain {
		return engine.HostObject(n.host())
	}
	return n.object()
}

// checkModes brings nodes of hosts in maintenance to a stop, and says what those wait for that come back.
func (p *planner) checkModes() {
	for _, n := range p.nodes {
		if n.torusd != nil && p.hosts[n.host()].ModeOf() == api.HostMaintenance && n.torusd.Spec.State == api.WantStopped {
			p.stopped[n.name] = true
		}
	}
	for _, n := range p.nodes {
		if n.torusd == nil || n.torusd.DeletionTimestamp != nil {
			continue
		}
		switch {
		case p.hosts[n.host()].ModeOf() == api.HostMaintenance:
			p.stop(n)
		case n.torusd.Spec.State == api.WantStopped || n.torusd.Status.State == api.DaemonStopped:
			p.decide(api.VerdictWait, api.ReasonStarting, engine.HostObject(n.host()), "leaving maintenance: its daemons are started")
		}
	}
}

// stop has the daemons of a node stopped where the others can do without.
func (p *planner) stop(n *node) {
	object := engine.HostObject(n.host())
	if !p.stopped[n.name] {
		if against := p.cannotStop(n); !against.None() {
			p.plan.Object(object, against)
			return
		}
		p.stopped[n.name] = true
	}
	for _, d := range []*api.Daemon{n.torusd, n.etcd} {
		if d != nil && d.Status.State != api.DaemonStopped {
			p.decide(api.VerdictWait, api.ReasonStopping, object, "its %s is stopping", d.Spec.Type)
		}
	}
}

// cannotStop says why the cluster cannot do without a node: not at all, or not yet.
func (p *planner) cannotStop(n *node) engine.Objection {
	switch {
	case n.Host != nil && !n.Host.AgentHeard():
		return engine.Wait(api.ReasonAgentDisconnected, "agent disconnected; its daemons will be stopped when it reconnects")
	case !p.everUp():
		return engine.Objection{}
	case p.word != nil:
		if against := p.etcdNeeds(n); !against.None() {
			return against
		}
	}
	return p.torusNeeds(n)
}

// etcdNeeds says why the cluster's etcd cannot do without a node.
func (p *planner) etcdNeeds(n *node) engine.Objection {
	if p.isMember(n) && 2*p.etcdRunning(n) <= p.size() {
		return engine.Refusal(api.ReasonQuorumAtRisk, "it holds a member of the cluster's etcd, and without it no majority of the members would run")
	}
	return engine.Objection{}
}

// torusNeeds says why the ring cannot do without a node.
func (p *planner) torusNeeds(n *node) engine.Objection {
	away := 0
	for _, o := range p.nodes {
		if x := p.peer(o); o != n && x != nil && x.State != torus.PeerAvail && (x.State == torus.PeerDown || !o.running() || p.stopped[o.name]) {
			away++
		}
	}
	switch {
	case p.word == nil:
		return engine.Wait(api.ReasonNotAnswering, "Torus does not answer, and only Torus can say what may be stopped")
	case p.in(n, torus.PeerAvail) || p.peer(n) == nil:
		return engine.Objection{}
	case away+1 >= p.word.Replication:
		return engine.Refusal(api.ReasonNotOkToStop, "each block is on %s, but with it %s would be away",
			words.Plural(p.word.Replication, "peer"), words.Plural(away+1, "peer"))
	case p.moving() != "":
		return engine.Wait(api.ReasonMovingData, "%s", p.moving())
	}
	return engine.Objection{}
}
