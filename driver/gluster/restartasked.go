package gluster

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// judgeRestart says what is against the restart of a glusterd that the view asks for. Its bricks go
// on meanwhile, as their processes are not its own: only where a volume asks for a quorum of the
// servers do those of the other nodes stop when too few glusterd are left. In a pod its bricks end
// with it, so that the pool does without the node for a while. An NFS server is a client.
func (p *planner) judgeRestart() {
	i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.daemon != nil && n.daemon.Name == p.view.Restart })
	if i < 0 {
		return
	}
	if against := p.againstRestart(p.nodes[i]); !against.None() {
		p.plan.Object(engine.RestartObject(p.view.Restart), against)
	}
}

func (p *planner) againstRestart(n *node) engine.Objection {
	const silence = "the pool does not answer, and only the pool can say whether a volume needs a quorum of its servers"
	switch {
	case p.ready() && n.takesBricksAlong() && n.running():
		return againstPause(p, n)
	case p.ready() && !p.reached(n): // the pool does without it already
		return engine.Objection{}
	case p.ready():
		return p.serverQuorum(n)
	case p.speaker != nil && p.speaker != n:
		return engine.Wait(api.ReasonNotAnswering, silence)
	}
	return engine.Refusal(api.ReasonNotAnswering, silence)
}

// takesBricksAlong says whether the end of a node's glusterd ends its bricks: in a pod it does.
func (n *node) takesBricksAlong() bool {
	return n.Host != nil && n.Host.Status.Runtime == api.RuntimePod
}

// againstPause asks what is asked when a node is stopped, for all that it serves stops meanwhile.
// It may speak for the pool: it comes back by itself.
func againstPause(p *planner, n *node) engine.Objection {
	if why := p.notBack(n); why != "" {
		return engine.Wait(api.ReasonNotReady, "%s", why)
	}
	if against := bricksNeeded(p, n); !against.None() {
		return against
	}
	if why := p.notHealed(n); why != "" {
		return engine.Wait(api.ReasonDataNotClean, "%s", why)
	}
	return engine.Objection{}
}
