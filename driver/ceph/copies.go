package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// scarce are the pools that are less safe than the cluster has room for, by their names.
type scarce struct {
	one, fewer, together, crowded, growing []string
}

// tellCopies tells what is less safe than the cluster has room for, as a decision, and as the condition Redundant of the
// StorageCluster, whose reason is the gravest. Pools that a resource declares are as that says, and it tells of them.
func (p *planner) tellCopies() {
	if !p.poolsKnown() || p.defaults.size == 0 || len(p.workingOSDs()) == 0 {
		return
	}
	decideOverlap(p)
	m := p.findScarce()
	reason := api.RedundancyAsRoom
	var said []string
	for _, x := range []struct {
		reason  string
		because api.Reason
		text    string
	}{
		{api.RedundancyOneCopy, api.ReasonNotRedundant, p.oneCopyText(m.one)},
		{api.RedundancyFewerCopies, api.ReasonNotRedundant, p.fewerText(m.fewer)},
		{api.RedundancyOneHost, api.ReasonNotRedundant, p.togetherText(m.together)},
		{api.RedundancyTooFewPlaces, api.ReasonInsufficientNodes, p.crowdedText(m.crowded)},
		{api.RedundancyGrowing, api.ReasonScaling, p.growingText(m.growing)},
	} {
		if x.text == "" {
			continue
		}
		if reason == api.RedundancyAsRoom {
			reason = x.reason
		}
		said = append(said, x.text)
		p.decide(api.VerdictSkip, x.because, "pools", "%s", x.text)
	}
	c := metav1.Condition{Type: api.ClusterRedundant, Status: metav1.ConditionTrue, Reason: reason, Message: p.roomText()}
	if len(said) > 0 {
		c.Status, c.Message = metav1.ConditionFalse, strings.Join(said, "; ")
	}
	p.plan.Conditions = append(p.plan.Conditions, c)
}

// decideOverlap names pools of a device class for which Ceph's autoscaler leaves other pools alone.
func decideOverlap(p *planner) {
	rules := map[string]Rule{}
	for _, pool := range p.seen.Pools {
		rules[pool.Name] = p.seen.PoolFacts.Rules[pool.Rule]
	}
	o := crushmap.Overlapping(rules, slices.Collect(maps.Values(p.seen.PoolFacts.Places)))
	for _, x := range p.pools {
		if slices.Contains(o.Classed, x.Name) && x.DeletionTimestamp == nil {
			x.unscaled = writes.Note(api.ReasonNotScaled, o.Text(x.Name), o.Next(rules[x.Name].Name))
			p.decide(api.VerdictSkip, api.ReasonNotScaled, x.line(), "%s; %s", x.unscaled.Text, x.unscaled.Next)
		}
	}
}

func (p *planner) findScarce() (m scarce) {
	for i := range p.seen.Pools {
		pool := &p.seen.Pools[i]
		own := p.ownPool(pool.Name)
		rule, known := p.seen.PoolFacts.Rules[pool.Rule]
		switch {
		case !known || pool.Erasure || own == nil && p.isDeclared(pool.Name):
		case own != nil && own.grows(p):
			m.growing = append(m.growing, pool.Name)
		case !p.osdsComing() && rule.Room(p.placesIn(), pool.Size) < pool.Size:
			m.crowded = append(m.crowded, pool.Name)
		case own == nil:
			p.sortScarce(&m, pool, rule)
		}
	}
	return m
}

// sortScarce notes in what a pool that was made by hand is less safe than it could be.
func (p *planner) sortScarce(m *scarce, pool *Pool, rule Rule) {
	if n := p.copiesFor(rule); pool.Size == 1 && n > 1 {
		m.one = append(m.one, pool.Name)
	} else if pool.Size < min(n, p.defaults.size) {
		m.fewer = append(m.fewer, pool.Name)
	}
	wide := hostRule(p.seen.PoolFacts.Rules[p.defaults.rule])
	if pool.Size > 1 && birthRule(rule) && wide && p.roomOver("host", pool.Size) >= pool.Size {
		m.together = append(m.together, pool.Name)
	}
}

// copiesFor is how many copies a pool with a rule can keep, up to as many as new pools do, and two at least if it can.
func (p *planner) copiesFor(rule Rule) int {
	return rule.Room(p.openPlaces(), max(2, p.defaults.size))
}

func (p *planner) ownPool(name string) *poolPlan {
	for _, x := range p.ownPools {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// placesIn are where OSDs are that are in, also those that are down for the moment.
func (p *planner) placesIn() (places []Place) {
	for id, place := range p.seen.PoolFacts.Places {
		if p.seen.OSDs[id].In && !p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(id))] {
			places = append(places, place)
		}
	}
	return places
}

// shellSet is the command by which a person changes a pool.
func shellSet(pool, option, value string) string {
	return fmt.Sprintf("'holdfast ceph shell -- ceph osd pool set %s %s %s', or declare a Pool of that name", pool, option, value)
}

// agree is the verb of so many pools, or of one.
func agree(pools []string, one, more string) string {
	if len(pools) == 1 {
		return one
	}
	return more
}

func (p *planner) oneCopyText(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	n := p.copiesFor(p.ruleOf(pools[0]))
	return fmt.Sprintf("%s %s 1 copy: if an OSD fails its data is lost, and no host of such an OSD can be stopped. "+
		"There is room for %s; to make them: %s",
		poolWords(pools), agree(pools, "keeps", "keep"), words.Plural(n, "copy"), shellSet(pools[0], optionSize, strconv.Itoa(n)))
}

func (p *planner) fewerText(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	n := p.copiesFor(p.ruleOf(pools[0]))
	return fmt.Sprintf("%s %s fewer copies than new pools: %s %d, and there is room for %d; to make them: %s",
		poolWords(pools),
		agree(pools, "keeps", "keep"), pools[0], p.poolNamed(pools[0]).Size, n, shellSet(pools[0], optionSize, strconv.Itoa(n)))
}

func (p *planner) togetherText(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	return fmt.Sprintf("copies of %s may share a host (CRUSH rule %s), although there are enough hosts; to spread "+
		"them, which moves data: %s",
		poolWords(pools), p.ruleOf(pools[0]).Name, shellSet(pools[0], optionRule, p.seen.PoolFacts.Rules[p.defaults.rule].Name))
}

func (p *planner) crowdedText(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	pool, rule := p.poolNamed(pools[0]), p.ruleOf(pools[0])
	level := rule.Domain()
	if level == "" || level == "osd" {
		level = "OSD"
	}
	return fmt.Sprintf("%s %s more copies than there is room for: %s %d, each on another %s, and there is room for "+
		"%d. Holdfast does not lower the number; add one",
		poolWords(pools), agree(pools, "keeps", "keep"), pool.Name, pool.Size, level, rule.Room(p.placesIn(), pool.Size))
}

func (p *planner) growingText(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	x, rule := p.ownPool(pools[0]), p.ruleOf(pools[0])
	why := p.whyNotGrow()
	if why != "" {
		why = ", when " + why
	}
	return fmt.Sprintf("Ceph's own pool %s grows with the cluster%s: from %s over %ss to %s over %ss", x.Name, why,
		words.Plural(x.have.Size, "copy"), rule.Domain(), words.Plural(x.size, "copy"), x.domain)
}

func (p *planner) ruleOf(pool string) Rule { return p.seen.PoolFacts.Rules[p.poolNamed(pool).Rule] }

// roomText says how safe data is where it cannot be safer.
func (p *planner) roomText() string {
	switch {
	case p.defaults.size == 1:
		return "new pools keep 1 copy, because there is 1 OSD: if it fails all data is lost. With more OSDs they keep more"
	case birthRule(p.seen.PoolFacts.Rules[p.defaults.rule]):
		return fmt.Sprintf("new pools keep %s on distinct OSDs, possibly on one host; with %d hosts, on distinct hosts",
			words.Plural(p.defaults.size, "copy"), p.hostsWanted())
	}
	return fmt.Sprintf("new pools keep %s, and every pool keeps as many copies as there is room for",
		words.Plural(p.defaults.size, "copy"))
}

// scantText names the pools that cannot do without any copy, where Ceph says that OSDs may not stop: its own sentence only
// counts placement groups.
func (p *planner) scantText() string {
	var scant []string
	for _, pool := range p.seen.Pools {
		if !pool.Erasure && pool.Size <= max(1, pool.MinSize) {
			scant = append(scant, fmt.Sprintf("%s keeps %s and stops serving if one is missing",
				pool.Name, words.Plural(pool.Size, "copy")))
		}
	}
	if len(scant) == 0 {
		return ""
	}
	return " (pool " + words.Few(scant) + ")"
}
