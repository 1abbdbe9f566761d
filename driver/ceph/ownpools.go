package ceph

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

// planOwnPools finds how Ceph's own pools are to be: as new pools are, and never with fewer copies, or on fewer hosts,
// than they are. One that a Pool declares is as that says.
func (p *planner) planOwnPools() {
	if !p.poolsKnown() || p.defaults.size == 0 {
		return
	}
	for _, name := range crushmap.CephsOwn {
		have := p.poolNamed(name)
		if have == nil || have.Erasure || p.isDeclared(name) {
			continue
		}
		x := &poolPlan{Pool: &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}}, have: have}
		p.growOwnPool(x)
		p.ownPools = append(p.ownPools, x)
	}
}

// growOwnPool takes as many copies as find a place, and the failure domain that is as wide as that of new pools.
func (p *planner) growOwnPool(x *poolPlan) {
	rule := p.seen.PoolFacts.Rules[x.have.Rule]
	x.size, x.domain, x.rule = x.have.Size, rule.Domain(), rule.Name
	made := p.ruleID(rulePrefix + "host")
	usable := made < 0 || hostRule(p.seen.PoolFacts.Rules[made])
	if usable && birthRule(rule) && p.roomOver("host", max(x.size, maxCopies)) >= max(x.size, p.hostsWanted()) {
		x.domain, x.rule = "host", rulePrefix+"host"
	}
	if p.defaults.size > x.size && rule.Room(p.openPlaces(), p.defaults.size) >= p.defaults.size {
		x.size = p.defaults.size
	}
	x.minSize = max(x.have.MinSize, x.size-x.size/2)
}

// isDeclared says whether a resource has a pool.
func (p *planner) isDeclared(name string) bool {
	return slices.ContainsFunc(p.allPools(), func(x *poolPlan) bool { return x.Name == name })
}

// grows says whether one of Ceph's own pools is not yet as it is to be.
func (x *poolPlan) grows(p *planner) bool {
	return x.have.Size < x.size || x.have.MinSize < x.minSize || p.seen.PoolFacts.Rules[x.have.Rule].Name != x.rule
}

// writeOwnPools takes one step with one of Ceph's own pools. Each moves data or has copies made, so that it waits until
// those of the step before, and all others, are there.
func (p *planner) writeOwnPools() {
	if len(p.ownPools) == 0 || p.whyNotGrow() != "" {
		return
	}
	for _, x := range p.ownPools {
		if x.grows(p) {
			p.stepOwnPool(x)
			return
		}
	}
}

// whyNotGrow says what Ceph's own pools wait for.
func (p *planner) whyNotGrow() string {
	o := p.seen
	switch {
	case !o.MgrAvailable || o.PGs < o.PGsWanted || o.PGsClean < o.PGs || o.PGsOld:
		return "all placement groups are active+clean"
	case p.osdsComing() || p.leavingAny():
		return "no OSD is being added or removed"
	}
	return ""
}

func (p *planner) leavingAny() bool {
	for _, leaves := range p.parting {
		if leaves {
			return true
		}
	}
	return false
}

// stepOwnPool has copies made first, since a single one is best not moved.
func (p *planner) stepOwnPool(x *poolPlan) {
	set := func(name string, value, have string) {
		p.poolCommand(x, api.ReasonScaling, verbPoolSet, api.RiskNone,
			map[string]string{paramOption: name, paramValue: value},
			"Ceph's own pool grows with the cluster: %s goes from %s to %s", name, have, value)
	}
	have := x.have
	rule := p.seen.PoolFacts.Rules[have.Rule].Name
	switch {
	case have.Size < x.size:
		set(optionSize, strconv.Itoa(x.size), strconv.Itoa(have.Size))
	case have.MinSize < x.minSize:
		set(optionMinSize, strconv.Itoa(x.minSize), strconv.Itoa(have.MinSize))
	case rule != x.rule && p.ruleID(x.rule) < 0 && !p.defaults.makes:
		p.bringRule(x, api.ReasonScaling)
	case rule != x.rule && p.ruleID(x.rule) >= 0:
		set(optionRule, x.rule, rule)
	}
	p.moving = true
}
