package ceph

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// removalOrder is the order in which the daemons of a deleted cluster go. OSDs and mgrs take leave of the mons, so the mons
// are the last.
var removalOrder = []string{TypeOSD, TypeMgr, TypeMon}

// remove plans the end of a deleted cluster: first all daemons learn what becomes of their data, then they go, type by type.
func (p *planner) remove() {
	p.plan.Finished = len(p.view.Daemons) == 0
	p.plan.Status = api.StorageStatusStatus{Type: api.StorageCeph, Status: api.StorageOffline}
	if p.setPolicy() {
		p.because("the cluster is being deleted")
		return
	}
	for _, group := range p.removalGroups() {
		if len(group) == 0 {
			continue
		}
		left := 0
		for _, d := range group {
			left++
			if d.DeletionTimestamp == nil {
				p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: "the cluster is being deleted", Risk: p.removalRisk(d)})
				p.decide(api.VerdictDo, label(d), "removed from host %s: the cluster is being deleted (deletionPolicy %s)", d.Spec.Host, p.policy())
				continue
			}
			p.decide(api.VerdictWait, label(d), "being removed from host %s", d.Spec.Host)
		}
		p.because(fmt.Sprintf("the cluster is being deleted: waiting for %s to be gone", plural(left, group[0].Spec.Type+" daemon")))
		return
	}
	p.because("the cluster is being deleted")
}

// removalRisk says that also a mon's directory is data: without any of them nothing of the OSDs' data can be found again.
func (p *planner) removalRisk(d *api.Daemon) api.Risk {
	if d.Spec.Type != TypeMgr && d.Spec.OnRemoval == api.DeletionWipe {
		return api.RiskData
	}
	return api.RiskRedundancy
}

func (p *planner) because(text string) {
	p.plan.Status.Message, p.plan.Status.Reasons = text, []string{text}
}

func (p *planner) policy() api.DeletionPolicy {
	return cmp.Or(p.cluster.Spec.DeletionPolicy, api.DeletionRetain)
}

// setPolicy tells the daemons what to do with their data when they go. It comes in a plan of its own, because the agents must
// not see a removal before they see this.
func (p *planner) setPolicy() (changed bool) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		// A manager has no data to keep; one that is going already has been told.
		if d.Spec.Type == TypeMgr || d.DeletionTimestamp != nil || d.Spec.OnRemoval == p.policy() {
			continue
		}
		next := *d.DeepCopy()
		next.Spec.OnRemoval = p.policy()
		p.change(next, false, specDiff(&d.Spec, &next.Spec))
		changed = true
	}
	return changed
}

// removalGroups are the daemons in the order in which they go. Those of an unknown type, if any, go first.
func (p *planner) removalGroups() [][]*api.Daemon {
	groups := make([][]*api.Daemon, 1+len(removalOrder))
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		g := 1 + slices.Index(removalOrder, d.Spec.Type)
		groups[g] = append(groups[g], d)
	}
	return groups
}
