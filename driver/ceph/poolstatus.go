package ceph

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
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
	p.poolState(x).Or(x.unscaled).Put(&s.ResourceStatus)
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
		s.Used, s.Available = writes.Rounded(u.Stored), writes.Rounded(u.Available)
	}
}

// poolState says whether a pool can be used, and why not.
func (p *planner) poolState(x *poolPlan) writes.Word {
	word := func(state api.ResourceState, text string) writes.Word { return writes.Word{State: state, Text: text} }
	was, failure := x.Status.State, p.failureOf(x.line()).Message
	switch problems := slices.Concat(x.refusals, x.waits).texts(); {
	case !p.poolsKnown() && x.id != 0:
		return word(api.ResourceOffline, "Ceph does not answer")
	case x.lost != nil:
		return word(api.ResourceOffline, cmp.Or(strings.Join(problems, "; "), x.lost.why))
	case x.have == nil && len(problems) > 0:
		is := word(api.ResourcePending, strings.Join(problems, "; "))
		is.Reason, is.Next = x.next.Reason, x.next.Next
		return is
	case !p.poolsKnown():
		return word(api.ResourcePending, "Ceph does not answer yet")
	case x.have == nil && p.cluster.ModeOf() == api.ClusterObserved:
		return word(api.ResourcePending, "the cluster is in mode Observed: the pool does not exist and is not created")
	case x.have == nil && failure != "":
		return word(api.ResourcePending, failure)
	case x.have == nil:
		return word(api.ResourceCreating, "it is being created")
	case p.seen.PGs < p.seen.PGsWanted && neverServed(&x.Status.ResourceStatus):
		return word(api.ResourceCreating, "its placement groups are being created")
	case p.seen.PGsClean < p.seen.PGs && len(p.seen.PoolFacts.Unclean) == 0 && was != "": // the manager did not say
		return writes.Word{State: was, Reason: x.Status.Reason, Text: x.Status.Message, Next: x.Status.Next}
	}
	pool := poolFacts(p, x.have)
	pool.Declared, pool.Fresh = true, neverServed(&x.Status.ResourceStatus)
	judged := writes.JudgePool(clusterFacts(p), pool)
	return judged.After(append(slices.Concat(x.refusals, x.waits).texts(), failure)...)
}

// poolParts are pools of a filesystem or a store, as judge says how they stand.
func poolParts(p *planner, pools []*poolPlan, judge func(*poolPlan) writes.Word) (parts []writes.Part) {
	for _, x := range pools {
		part := writes.Part{Name: x.Name, Is: judge(x)}
		if x.have != nil {
			part.PGs, part.Unclean = x.have.PGs, p.seen.PoolFacts.Unclean[x.have.ID]
		}
		parts = append(parts, part)
	}
	return parts
}

// poolFacts is what is known of a pool in Ceph that decides whether clients can write to it.
func poolFacts(p *planner, have *Pool) *writes.Pool {
	var places []Place
	for id, place := range p.seen.PoolFacts.Places {
		if p.seen.OSDs[id].In && place.Weight > 0 {
			places = append(places, place)
		}
	}
	rule, usage := p.seen.PoolFacts.Rules[have.Rule], p.seen.PoolFacts.Usage[have.Name]
	return &writes.Pool{
		Name: have.Name, Flags: have.Flags, Stored: usage.Stored, Objects: usage.Objects,
		MaxBytes: have.MaxBytes, MaxObjects: have.MaxObjects, Copies: have.Size, MinSize: have.MinSize,
		Erasure: have.Erasure, Domain: rule.Domain(), Room: rule.Room(places, have.Size),
		PGs: have.PGs, Unclean: p.seen.PoolFacts.Unclean[have.ID],
	}
}

// clusterFacts is what is known of the cluster that decides whether clients can write to its pools.
func clusterFacts(p *planner) *writes.Cluster {
	c := &writes.Cluster{Flags: p.seen.Found.Flags}
	for _, id := range slices.Sorted(maps.Keys(p.seen.OSDs)) {
		o, name := p.seen.OSDs[id], osdName(id)
		parting := p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(id))]
		switch {
		case o.In && !o.Up:
			c.Down = append(c.Down, name)
		case !o.In && o.Up && !parting:
			c.Out = append(c.Out, name)
		}
		c.Fill(name, o.Fullness)
	}
	return c
}

// neverServed says whether clients could not use a resource yet.
func neverServed(s *api.ResourceStatus) bool {
	return !s.Served && (s.State == "" || s.State == api.ResourcePending || s.State == api.ResourceCreating)
}
