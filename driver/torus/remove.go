package torus

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// ending is how a deleted cluster goes: all daemons at once, and no blocks are moved away before.
var ending = engine.Ending{Object: engine.DaemonObject, Data: func(string) bool { return true }}

// tellGivenEtcd says what becomes of the ring and the volumes in an etcd that the cluster was
// given.
func tellGivenEtcd(view *engine.View, plan *engine.Plan) {
	have := view.DaemonsByName()
	for i := range plan.Remove {
		r := &plan.Remove[i]
		given := have[r.Name].Spec.Parameters[torus.ParamGiven]
		switch {
		case given == "":
		case have[r.Name].Spec.OnRemoval == api.DeletionWipe:
			r.Reason += ", and its ring and volumes are removed from the etcd " + given
		default:
			r.Reason += "; its ring and volumes stay in the etcd " + given
		}
	}
}
