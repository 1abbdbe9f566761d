package gluster

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// judgeRestart says what is against the restart of a glusterd that the view asks for. Its bricks go on meanwhile, as their processes are not its own:
// only where a volume asks for a quorum of the servers do those of the other nodes stop when too few glusterd are left. An NFS server is a client.
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
	case p.ready() && !p.reached(n): // the pool does without it already
		return engine.Objection{}
	case p.ready():
		return p.serverQuorum(n)
	case p.speaker != nil && p.speaker != n:
		return engine.Wait(api.ReasonNotAnswering, silence)
	}
	return engine.Refusal(api.ReasonNotAnswering, silence)
}
