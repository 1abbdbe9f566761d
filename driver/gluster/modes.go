package gluster

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// checkModes brings nodes of hosts in maintenance to a stop, one after the other, and says what those wait for that come back.
func (p *planner) checkModes() {
	var begun, rest []*node
	for _, n := range p.nodes {
		switch {
		case n.daemon == nil || n.daemon.DeletionTimestamp != nil:
		case p.restarting(n): // see checkUpgrades
		case p.hosts[n.hostName()].ModeOf() != api.HostMaintenance:
			p.awaitBack(n)
		case n.daemon.Spec.State == api.WantStopped:
			begun = append(begun, n)
			p.stopped[n.name] = true
		default:
			rest = append(rest, n)
		}
	}
	turn := ""
	for _, n := range begun {
		if n.daemon.Status.State != api.DaemonStopped {
			turn = n.name
			p.decide(api.VerdictWait, api.ReasonStopping, engine.HostObject(n.hostName()), "its glusterd and the bricks are stopping")
		}
	}
	for _, n := range rest {
		if p.mayStop(n, turn) {
			turn = n.name
			p.stopped[n.name] = true
			p.decide(api.VerdictWait, api.ReasonStopping, engine.HostObject(n.hostName()), "its glusterd and the bricks are stopped")
		}
	}
}

// mayStop says whether the pool can do without a node.
func (p *planner) mayStop(n *node, turn string) bool {
	object := engine.HostObject(n.hostName())
	if against := p.cannotStop(n); !against.None() {
		p.plan.Object(object, against)
		return false
	}
	if turn != "" {
		p.decide(api.VerdictWait, api.ReasonOneAtATime, object, "waiting for node %s to stop", turn)
		return false
	}
	return true
}

// cannotStop says why the pool cannot do without a node: not at all, or not yet.
func (p *planner) cannotStop(n *node) engine.Objection {
	switch {
	case n.Host != nil && !n.Host.AgentHeard():
		return engine.Wait(api.ReasonAgentDisconnected, "agent disconnected; its daemons will be stopped when it reconnects")
	case p.neverUp():
		return engine.Objection{}
	case !p.ready():
		return engine.Wait(api.ReasonNotAnswering, "waiting for the pool: it does not answer, and it must confirm each stop")
	case p.notBack(n) != "":
		return engine.Wait(api.ReasonNotReady, "%s", p.notBack(n))
	case n == p.speaker && p.successor != nil:
		return engine.Wait(api.ReasonHandingOver, "waiting for node %s to report on the pool", p.successor.name)
	case n == p.speaker && len(p.members()) > 1:
		return engine.Refusal(api.ReasonQuorumAtRisk, "no other node of the pool is up")
	}
	return bricksNeeded(p, n)
}

// bricksNeeded says why volumes cannot do without what a node serves, or the pool without its
// glusterd.
func bricksNeeded(p *planner, n *node) engine.Objection {
	for _, v := range p.volumes {
		if v.pool == nil || v.pool.State != glusterd.VolumeStarted {
			continue
		}
		if v.pool.Task != nil && v.pool.Task.State == glusterd.TaskInProgress && len(p.bricksOf(v, n)) > 0 {
			return engine.Wait(api.ReasonMovingData, "files of volume %s are moving (%s)", v.name, v.pool.Task.Kind)
		}
		for _, set := range v.pool.Sets() {
			i := slices.IndexFunc(set, func(b glusterd.Brick) bool { return p.nodeOf(&b) == n })
			if i < 0 {
				continue
			}
			if against := sets.Without(v.pool, set, i, p.away); !against.None() {
				against.Message = fmt.Sprintf("volume %s needs it: %s", v.name, against.Message)
				return against
			}
		}
	}
	return p.serverQuorum(n)
}

// serverQuorum keeps more than half of the pool's nodes up where a volume asks for that: without it they stop their bricks.
func (p *planner) serverQuorum(n *node) engine.Objection {
	up, all := 0, len(p.speaker.report.Peers)+1
	for _, o := range p.nodes {
		if o != n && p.reached(o) && !p.stopped[o.name] {
			up++
		}
	}
	for _, v := range p.volumes {
		if v.pool != nil && v.pool.Options["cluster.server-quorum-type"] == "server" && 2*up <= all {
			return engine.Refusal(api.ReasonQuorumAtRisk,
				"volume %s has cluster.server-quorum-type server, and %d of the pool's %d nodes would be left", v.name, up, all)
		}
	}
	return engine.Objection{}
}

// bricksOf are a volume's bricks on a node.
func (p *planner) bricksOf(v *volume, n *node) []glusterd.Brick {
	return slices.DeleteFunc(slices.Clone(v.pool.Bricks), func(b glusterd.Brick) bool { return p.nodeOf(&b) != n })
}

// awaitBack says what a node waits for that was started a moment ago.
func (p *planner) awaitBack(n *node) {
	if n.Node == nil || p.hosts[n.hostName()].ModeOf() != api.HostActive || n.Host == nil || !n.Host.AgentHeard() {
		return
	}
	d := n.daemon
	wait := func(reason api.Reason, format string, args ...any) {
		p.decide(api.VerdictWait, reason, engine.HostObject(n.hostName()), format, args...)
	}
	switch {
	case d.Spec.State == api.WantStopped || d.Status.State == api.DaemonStopped:
		wait(api.ReasonStarting, "leaving maintenance: its glusterd is started")
	case d.Status.State != api.DaemonRunning || d.Status.Started == nil || p.now.Sub(d.Status.Started.Time) > p.waits.GlusterBack || !p.ready():
	case p.peer(n) != nil && !p.reached(n):
		wait(api.ReasonJoining, "glusterd started; waiting for the pool to connect")
	default:
		for _, v := range p.volumes {
			for _, b := range p.startedBricks(v, n) {
				if b.State != glusterd.BrickOnline {
					wait(api.ReasonStarting, "its glusterd was started: waiting for brick %s of volume %s", b.Path, v.name)
					return
				}
			}
		}
	}
}

func (p *planner) startedBricks(v *volume, n *node) []glusterd.Brick {
	if v.pool == nil || v.pool.State != glusterd.VolumeStarted {
		return nil
	}
	return p.bricksOf(v, n)
}
