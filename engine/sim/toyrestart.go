package sim

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// askedRestart refuses the restart of a daemon without which less than a majority would run.
func (p *toyPlan) askedRestart() {
	d := p.daemon(p.view.Restart)
	if d == nil {
		return
	}
	object := engine.RestartObject(d.Name)
	state, answers := p.view.System.(*ToyState)
	if !answers {
		p.decide(object, api.VerdictRefuse, api.ReasonNotAnswering, "the toy does not answer")
		return
	}
	if !slices.Contains(state.Running, d.Spec.ID) {
		return
	}
	if others, all := len(state.Running)-1, len(p.view.Nodes); 2*others <= all {
		p.decide(object, api.VerdictRefuse, api.ReasonQuorumAtRisk, fmt.Sprintf("only %d of %d daemons would run, and a majority has to", others, all))
	}
}
