package torus

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// judgeRestart says what is against the restart that the view asks for: what would be against stopping that daemon for maintenance.
func (p *planner) judgeRestart() {
	i := slices.IndexFunc(p.nodes, func(n *node) bool {
		return p.view.Restart != "" && (n.torusd != nil && n.torusd.Name == p.view.Restart || n.etcd != nil && n.etcd.Name == p.view.Restart)
	})
	if i < 0 {
		return
	}
	if against := p.againstRestart(p.nodes[i]); !against.None() {
		p.plan.Object(engine.RestartObject(p.view.Restart), against)
	}
}

func (p *planner) againstRestart(n *node) engine.Objection {
	if p.have[p.view.Restart].Spec.Type != torus.TypeTorusd {
		return p.etcdNeeds(n)
	}
	if p.in(n, torus.PeerDown) { // the ring does without it already
		return engine.Objection{}
	}
	if p.word == nil && p.speaker == nil {
		return engine.Refusal(api.ReasonNotAnswering, "Torus does not answer, and only Torus can say what may be stopped")
	}
	against := p.torusNeeds(n)
	if p.word != nil && p.word.Count(torus.PeerDown) > 0 && len(p.those(func(o *node) bool { return o.torusd != nil && !o.running() })) == 0 {
		against.Verdict = api.VerdictWait // the one that is down was only just started
	}
	return against
}
