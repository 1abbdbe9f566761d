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
	if verdict, why := p.againstRestart(p.nodes[i]); why != "" {
		p.decide(verdict, engine.RestartObject(p.view.Restart), "%s", why)
	}
}

func (p *planner) againstRestart(n *node) (api.Verdict, string) {
	if p.have[p.view.Restart].Spec.Type != torus.TypeTorusd {
		return p.etcdNeeds(n)
	}
	if p.in(n, torus.PeerDown) { // the ring does without it already
		return "", ""
	}
	if p.word == nil && p.speaker == nil {
		return api.VerdictRefuse, "Torus does not answer, and only Torus can say what may be stopped"
	}
	verdict, why := p.torusNeeds(n)
	if p.word != nil && p.word.Count(torus.PeerDown) > 0 && len(p.those(func(o *node) bool { return o.torusd != nil && !o.running() })) == 0 {
		verdict = api.VerdictWait // the one that is down was only just started
	}
	return verdict, why
}
