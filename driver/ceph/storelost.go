package ceph

// findStore finds the pools of a store. Its gateways know pools by their names: none of them runs where such a name is another pool's.
func (p *planner) findStore(x *storePlan) {
	x.lost = p.findPools(x.ObjectStore, x.pools...)
	if len(x.lost) == 0 {
		return
	}
	x.refusals.add(x.lost.refusal(x.ObjectStore))
	if x.lost.taken() {
		x.service.count, x.service.least = 0, 0
	}
}
