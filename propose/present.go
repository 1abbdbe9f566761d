package propose

import (
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// own are the changes without those that destroy data anyway.
func (p *Proposal) own() []plans.Change {
	return slices.DeleteFunc(slices.Clone(p.Report.Changes), func(c plans.Change) bool { return p.anyway[dataOf(c)] })
}

// Destroys are those of them that destroy data.
func (p *Proposal) Destroys() []plans.Change {
	return slices.DeleteFunc(p.own(), func(c plans.Change) bool { return c.Risk != api.RiskData })
}

// dataOf names what a change does to data in a cluster.
func dataOf(c plans.Change) string {
	return strings.Join([]string{c.Cluster, c.Verb, c.Object, c.Label}, " ")
}

// present is the view of a cluster as things are, or nil where it is new.
func present(before *engine.Objects, after *engine.View) *engine.View {
	view, err := before.View(nameOf(after.Cluster))
	if err != nil {
		return nil
	}
	view.System, view.Gone = after.System, hosts.Gone(before.Hosts, before.Actions)
	return view
}

// presentPlan is what the driver plans as things are, or nil where the cluster is new.
func presentPlan(driver engine.Driver, before *engine.Objects, after *engine.View, now time.Time) *engine.Plan {
	if view := present(before, after); view != nil {
		return driver.Plan(view, now)
	}
	return nil
}

// presentProjection is what will happen as things are; nothing where the cluster is new.
func presentProjection(driver engine.Driver, before *engine.Objects, after *engine.View, now time.Time) *engine.Projection {
	if view := present(before, after); view != nil {
		return engine.Project(driver, view, now)
	}
	return &engine.Projection{First: &engine.Plan{}, Last: &engine.Plan{}}
}

// addAnyway notes what of the data in a cluster is destroyed as things are: a host that was drained
// by its named plan makes nothing else that is done meanwhile destroy data.
func (p *Proposal) addAnyway(was *engine.Projection) {
	for _, c := range plans.FromProjection(was) {
		if c.Risk == api.RiskData {
			p.anyway[dataOf(c)] = true
		}
	}
}
