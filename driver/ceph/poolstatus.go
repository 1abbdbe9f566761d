package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// putPools writes the statuses of Pools, and lets those go that are gone.
func (p *planner) putPools() {
	for _, x := range p.pools {
		if x.owner != nil {
			continue
		}
		next := x.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = x.Generation
		if x.DeletionTimestamp != nil {
			if p.dropPool(x, s) {
				p.plan.LetGo(x.Pool)
				continue
			}
		} else {
			p.tellPool(x, s)
			p.setLost(next, p.poolsKnown(), x.losses())
			engine.Accept(next, x.refusals.texts(), p.now)
		}
		p.plan.PutResource(x.Pool, next)
	}
}

// tellPool says how a pool stands.
func (p *planner) tellPool(x *poolPlan, s *api.PoolStatus) {
	s.State, s.Message = p.poolState(x)
	s.ID = x.id
	if !p.poolsKnown() || x.have == nil || len(x.refusals) > 0 { // one that was refused is somebody else's
		return
	}
	s.ID, s.PGs, s.FailureDomain = x.have.ID, int32(x.have.PGs), p.domainOf(x.have)
	s.Layout = words.Plural(x.have.Size, "copy")
	if x.have.Erasure {
		profile := p.seen.PoolFacts.Profiles[x.have.Profile]
		s.Layout = profile["k"] + "+" + profile["m"]
	}
	if u, known := p.seen.PoolFacts.Usage[x.Name]; known {
		s.Used, s.Available = rounded(u.Stored), rounded(u.Available)
	}
}

// poolState says whether a pool can be used, and why not.
func (p *planner) poolState(x *poolPlan) (api.ResourceState, string) {
	was, failure := x.Status.State, p.failureOf(x.line()).Message
	switch problems := slices.Concat(x.refusals, x.waits).texts(); {
	case !p.poolsKnown() && x.id != 0:
		return api.ResourceOffline, "Ceph does not answer"
	case x.lost != nil:
		return api.ResourceOffline, cmp.Or(strings.Join(problems, "; "), x.lost.why)
	case x.have == nil && len(problems) > 0:
		return api.ResourcePending, strings.Join(problems, "; ")
	case !p.poolsKnown():
		return api.ResourcePending, "Ceph does not answer yet"
	case x.have == nil && p.cluster.ModeOf() == api.ClusterObserved:
		return api.ResourcePending, "the cluster is in mode Observed: the pool does not exist and is not created"
	case x.have == nil && failure != "":
		return api.ResourcePending, failure
	case x.have == nil:
		return api.ResourceCreating, "it is being created"
	case p.seen.PGs < p.seen.PGsWanted && neverServed(&x.Status.ResourceStatus):
		return api.ResourceCreating, "its placement groups are being created"
	case p.seen.PGsClean < p.seen.PGs && len(p.seen.PoolFacts.Unclean) == 0 && was != "":
		return was, x.Status.Message // the manager did not say
	}
	state, message := p.judgePool(x)
	return state, strings.Join(slices.DeleteFunc(append(slices.Concat(x.refusals, x.waits).texts(), failure, message),
		func(s string) bool { return s == "" }), "; ")
}

// judgePool goes by the pool's placement groups.
func (p *planner) judgePool(x *poolPlan) (api.ResourceState, string) {
	unclean, total, inactive := p.seen.PoolFacts.Unclean[x.have.ID], 0, 0
	var texts []string
	for _, state := range slices.Sorted(maps.Keys(unclean)) {
		total += unclean[state]
		if !slices.Contains(strings.Split(state, "+"), "active") {
			inactive += unclean[state]
		}
		texts = append(texts, fmt.Sprintf("%d %s", unclean[state], state))
	}
	message := fmt.Sprintf("%d of %d placement groups are not active+clean: %s", total, x.have.PGs, words.Few(texts))
	switch {
	case inactive > 0 && neverServed(&x.Status.ResourceStatus):
		return api.ResourceCreating, message
	case inactive > 0:
		return api.ResourceOffline, message
	case total > 0:
		return api.ResourceDegraded, message
	case x.have.Full:
		return api.ResourceDegraded, "its quota is reached: writes fail until something is deleted or spec.quota is raised"
	}
	return api.ResourceOnline, ""
}

// neverServed says whether clients could not use a resource yet.
func neverServed(s *api.ResourceStatus) bool {
	return !s.Served && (s.State == "" || s.State == api.ResourcePending || s.State == api.ResourceCreating)
}

// rounded is a number of bytes to two digits: a status that changed with each object would be written with each run.
func rounded(bytes int64) *resource.Quantity {
	step := int64(1)
	for bytes/step >= 100 {
		step *= 10
	}
	return resource.NewQuantity(int64(math.Round(float64(bytes)/float64(step)))*step, resource.DecimalSI)
}
