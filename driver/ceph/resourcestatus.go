package ceph

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// judgeResources tells of resources that clients could use and that are not whole now. One that is still being made, or that is refused,
// keeps no cluster from being ONLINE: its own status tells of it. The OSDs of DriveGroups are told of one by one.
func (p *planner) judgeResources(s *state) {
	for _, r := range p.view.Resources {
		status := p.plan.Planned(r).Common()
		if _, group := r.(*api.DriveGroup); group || r.GetDeletionTimestamp() != nil || status.State == api.ResourceOnline {
			continue
		}
		if engine.Served(status.State) {
			s.because("%s %s is %s: %s", strings.ToLower(r.ResourceKind()), r.GetName(), status.State, status.Message)
		}
		if _, fs := r.(*api.Filesystem); fs && status.State != api.ResourcePending {
			p.moving = true // Ceph sends no word when an MDS has taken over
		}
	}
}

// availabilityChecks are what Ceph says of pools whose placement groups do not serve yet, as those of each new pool for some seconds
// (Ceph, Health checks, Data health).
var availabilityChecks = []string{checkAvailability, "PG_DEGRADED"}

// ofNewPools says whether a health check comes from nothing but pools that are being made.
func (p *planner) ofNewPools(check api.HealthCheck) bool {
	return slices.Contains(availabilityChecks, check.Code) && p.onlyNewPools()
}

// onlyNewPools says whether all placement groups that are missing or not active+clean are of declared pools that are being made: that is no
// fault of the cluster.
func (p *planner) onlyNewPools() bool {
	made, placementGroups := map[int64]bool{}, 0
	for _, x := range p.allPools() {
		if x.have != nil && x.unserved() {
			made[x.have.ID] = true
			placementGroups += x.have.PGs
		}
	}
	if len(made) == 0 || p.seen.PoolFacts == nil || p.seen.PGsWanted-p.seen.PGsClean > placementGroups {
		return false
	}
	for pool := range p.seen.PoolFacts.Unclean {
		if !made[pool] {
			return false
		}
	}
	return true
}

// unserved says whether nobody could use the pool yet, or what it is a part of.
func (x *poolPlan) unserved() bool { return neverServed(&x.Status.ResourceStatus) }
