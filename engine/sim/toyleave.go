package sim

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// letGo removes the daemons of StorageNodes that are not declared any more, when all others run.
func (p *toyPlan) letGo(wanted []api.Daemon) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if p.declared(d.Spec.ID) || d.DeletionTimestamp != nil || p.removing(d.Name) {
			continue
		}
		switch {
		case p.missing(wanted) != "":
			p.decide("node/"+d.Spec.ID, api.VerdictWait, api.ReasonOneAtATime, "it is not declared any more, and goes when all others run")
		case len(wanted) == 0:
			p.decide("node/"+d.Spec.ID, api.VerdictRefuse, api.ReasonInsufficientNodes, "it is not declared any more, and no other node is there: declare another one, or delete the cluster")
		default:
			p.Remove = append(p.Remove, engine.Removal{Name: d.Name, Reason: "its StorageNode is not declared any more"})
		}
	}
}

func (p *toyPlan) declared(node string) bool {
	for i := range p.view.Nodes {
		if p.view.Nodes[i].Name == node {
			return true
		}
	}
	return false
}
