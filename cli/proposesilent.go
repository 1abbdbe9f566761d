package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/plans"
	"github.com/holdfast-storage/holdfast/engine"
)

// addSilence says why a storage system that decides what happens does not answer, or did not answer everything. Where there is no word of it at all that
// is noted: nobody knows then what comes of this. What becomes of a cluster that is deleted, or that nothing is done to, it does not decide.
func (p *proposal) addSilence(driver engine.Driver, view *engine.View, failed error) string {
	if view.Cluster.DeletionTimestamp != nil || view.Cluster.ModeOf() != api.ClusterActive {
		return ""
	}
	why, partly := driver.Unanswered(view), ""
	if failed != nil {
		partly = failed.Error()
	}
	if why != "" || failed != nil && view.System == nil {
		cluster := plans.ObjectName(engine.KindCluster, view.Cluster.Namespace, view.Cluster.Name)
		p.silent[cluster] = fmt.Sprintf("%s of %s does not answer (%s)", view.Cluster.Spec.Type, cluster, cmp.Or(partly, why))
		p.basis.AddSilence(cluster)
		p.report.Unknown = true
	}
	return cmp.Or(partly, why)
}

// silence tells of all that do not answer.
func (p *proposal) silence() string {
	return strings.Join(slices.Sorted(maps.Values(p.silent)), ", ")
}

// unkept is the error of a plan that is shown and not kept, because it would bind to what nobody knows.
func (p *proposal) unkept() error {
	if len(p.silent) == 0 {
		return nil
	}
	unplanned := "holdfast apply -f FILE"
	if p.operation == api.PlanDelete {
		unplanned = "holdfast delete KIND NAME"
	}
	return &exitError{exitRefused, fmt.Errorf("no plan is kept: %s, so the plan is incomplete. See 'holdfast status'; "+
		"plan again when it answers, or continue without a plan: '%s'", p.silence(), unplanned)}
}

// unsure refuses a plan that was made when the storage system answered, while it does not: what would happen now nobody can compare. The plan is good
// again when it answers. One that was made in silence, for data that is destroyed is named in any case, says no less than it did.
func (p *proposal) unsure(plan *api.Plan) error {
	known := func(cluster, _ string) bool { return plans.MadeInSilence(&plan.Spec, cluster) }
	if maps.DeleteFunc(p.silent, known); len(p.silent) == 0 {
		return nil
	}
	return &exitError{exitRefused, fmt.Errorf("%s, so plan %s cannot be checked, and nothing was changed. "+
		"See 'holdfast status'; name the plan again when it answers", p.silence(), plan.Name)}
}
