package torus

import (
	"cmp"
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// remove plans the end of a deleted cluster: first the daemons learn what becomes of their data, then all of them go at once, and
// then the Volumes are let go. No blocks are moved away before: all of it ends.
func (p *planner) remove() {
	text := "the cluster is being deleted"
	switch {
	case p.setPolicy():
	case len(p.view.Daemons) > 0:
		text = fmt.Sprintf("the cluster is being deleted: waiting for %s to be gone", plural(len(p.view.Daemons), "daemon"))
		p.removeDaemons()
	default:
		for i := range p.view.Volumes {
			p.plan.Volumes = append(p.plan.Volumes, engine.VolumeStatus{Name: p.view.Volumes[i].Name, Status: p.view.Volumes[i].Status, Gone: true})
		}
		p.plan.Finished = true
	}
	p.plan.Status = api.StorageStatusStatus{Type: api.StorageTorus, Status: api.StorageOffline, Message: text, Reasons: []string{text}}
}

func (p *planner) policy() api.DeletionPolicy {
	return cmp.Or(p.cluster.Spec.DeletionPolicy, api.DeletionRetain)
}

func (p *planner) removeDaemons() {
	risk := api.RiskRedundancy
	if p.policy() == api.DeletionWipe {
		risk = api.RiskData // the engine knows of devices alone
	}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.DeletionTimestamp != nil {
			p.decide(api.VerdictWait, "daemon/"+d.Name, "being removed from host %s", d.Spec.Host)
			continue
		}
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: "the cluster is being deleted", Risk: risk})
		p.decide(api.VerdictDo, "daemon/"+d.Name, "removed from host %s: the cluster is being deleted (deletionPolicy %s)", d.Spec.Host, p.policy())
	}
}

// setPolicy tells the daemons what to do with their data when they go. It comes in a plan of its own, because the agents must
// not see a removal before they see this.
func (p *planner) setPolicy() (changed bool) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.DeletionTimestamp != nil || d.Spec.OnRemoval == p.policy() {
			continue
		}
		next := *d.DeepCopy()
		next.Spec.OnRemoval = p.policy()
		p.change(next, false, difference(&d.Spec, &next.Spec))
		changed = true
	}
	return changed
}
