package why

import (
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// planNamed answers for a Plan.
func planNamed(w *World, object string) (Answer, bool) {
	name := strings.TrimPrefix(object, "plan/")
	for i := range w.Plans {
		if w.Plans[i].Name == name {
			return planned(&w.Plans[i]), true
		}
	}
	return Answer{}, false
}

func planned(p *api.Plan) Answer {
	again := "make another one: 'holdfast plan -f FILE'."
	apply := fmt.Sprintf("see it with 'holdfast get plan %s -o jsonpath={.status.proposal.report}', and carry it "+
		"out with 'holdfast "+
		"apply --plan %s'.", p.Name, p.Name)
	switch p.Status.State {
	case api.PlanProposed:
		text := "Plan " + p.Name + " is ready and not applied yet"
		if x := p.Status.Proposal; x != nil {
			text += fmt.Sprintf(": it has %d changes", x.Count)
			if x.DestroysCount > 0 {
				text += fmt.Sprintf(", of which %d destroy data", x.DestroysCount)
			}
		}
		return answered(sentence(text), apply)
	case api.PlanApplying:
		return answered(join("Plan "+p.Name+" is being applied", p.Status.Message),
			fmt.Sprintf("wait; if the command that applies it has ended, run 'holdfast apply --plan %s' again.",
				p.Name)).
			because(api.ReasonTaskInProgress)
	case api.PlanApplied:
		return answered(join("Plan "+p.Name+" was applied", p.Status.Message), "")
	case api.PlanStale:
		return answered(join("Plan "+p.Name+" is out of date, and cannot be applied", p.Status.Message), again).
			because(api.ReasonConflict)
	case api.PlanFailed:
		return answered(join("The leader could not make plan "+p.Name, p.Status.Message), "remove the cause, and "+again).
			because(api.ReasonNotReady)
	}
	return answered(fmt.Sprintf("The leader has not answered plan %s yet.", p.Name),
		"wait a moment; if it stays so, check with 'holdfast doctor' whether a server "+
			"leads.").because(api.ReasonNotAnswering)
}
