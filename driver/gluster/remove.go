package gluster

import (
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// remove plans the end of a deleted cluster: first the daemons learn what becomes of their data, then all of them go at
// once. Nothing is moved away or taken out of the pool before: all of it ends.
func (p *planner) remove() {
	p.plan.Status = api.StorageStatusStatus{Type: api.StorageGlusterFS, Status: api.StorageOffline}
	text := "the cluster is being deleted"
	switch {
	case p.setPolicy():
	case len(p.view.Daemons) > 0:
		text = fmt.Sprintf("the cluster is being deleted: waiting for %s to be gone", plural(len(p.view.Daemons), "daemon"))
		p.removeDaemons()
	default:
		p.plan.Finished = true
	}
	p.plan.Status.Message, p.plan.Status.Reasons = text, []string{text}
}

func (p *planner) removeDaemons() {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.DeletionTimestamp != nil {
			p.decide(api.VerdictWait, "daemon/"+d.Name, "being removed from host %s", d.Spec.Host)
			continue
		}
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: "the cluster is being deleted", Risk: p.removalRisk(d)})
		p.decide(api.VerdictDo, "daemon/"+d.Name, "removed from host %s: the cluster is being deleted (deletionPolicy %s)", d.Spec.Host, policy(p.cluster.Spec.DeletionPolicy))
	}
}

// removalRisk says that data also lies in directories, of which the engine knows nothing.
func (p *planner) removalRisk(d *api.Daemon) api.Risk {
	if d.Spec.OnRemoval == api.DeletionWipe {
		return api.RiskData
	}
	return api.RiskRedundancy
}

// setPolicy tells the daemons what to do with their data when they go. It comes in a plan of its own, because the agents must
// not see a removal before they see this.
func (p *planner) setPolicy() (changed bool) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.DeletionTimestamp != nil || d.Spec.OnRemoval == policy(p.cluster.Spec.DeletionPolicy) {
			continue
		}
		next := *d.DeepCopy()
		next.Spec.OnRemoval = policy(p.cluster.Spec.DeletionPolicy)
		p.change(next, false, specDiff(&d.Spec, &next.Spec))
		changed = true
	}
	return changed
}
