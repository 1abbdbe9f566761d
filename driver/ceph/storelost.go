package ceph

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// findStore finds the pools of a store. Its gateways know pools by their names: none of them runs where such a name is another pool's.
func (p *planner) findStore(x *storePlan) {
	x.lost = p.findPools(x.ObjectStore, x.pools...)
	if len(x.lost) == 0 {
		return
	}
	x.refusals = append(x.refusals, x.lost.refusal(x.ObjectStore))
	if slices.ContainsFunc(x.lost, func(l *loss) bool { return l.reason == api.ReasonNameTaken }) {
		x.service.count, x.service.least = 0, 0
	}
}
