package plans

import (
	"cmp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// restarts are the first of the steps in which daemons of one kind are started again one after the other, for the same reason: each stops in one step and
// starts in the next, and nothing else is done meanwhile. It returns those changes that have them stop, two steps each.
func restarts(steps [][]Change) (stops []Change) {
	for i := 0; i+1 < len(steps); i += 2 {
		stop, start := steps[i], steps[i+1]
		if len(stop) != 1 || len(start) != 1 || !isRestart(stop[0], start[0]) || len(stops) > 0 && !alike(stop[0], stops[0]) {
			break
		}
		stops = append(stops, stop[0])
	}
	return stops
}

// isRestart says whether two changes have a daemon stop, and start where and as it was.
func isRestart(stop, start Change) bool {
	return stop.Verb == VerbChange && start.Verb == VerbChange && stop.Object == start.Object && stop.Host == start.Host &&
		stop.State == api.WantStopped && start.State == api.WantRunning && cmp.Or(start.Risk, api.RiskNone) == api.RiskNone
}

func alike(a, b Change) bool {
	kind, _, _ := strings.Cut(a.Label, ".")
	other, _, _ := strings.Cut(b.Label, ".")
	return kind == other && a.Reason == b.Reason && a.Risk == b.Risk
}

// bySteps puts together what is done in each step, from the first on.
func bySteps(changes []Change) (steps [][]Change) {
	for _, c := range changes {
		if i := c.Step - 1; i == len(steps) {
			steps = append(steps, []Change{c})
		} else if i >= 0 && i < len(steps) {
			steps[i] = append(steps[i], c)
		}
	}
	return slices.Clip(steps)
}
