package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/images"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Options of pools that a Pool's spec decides on (Ceph docs, "Pools: set pool values").
const (
	optionSize      = "size"
	optionMinSize   = "min_size"
	optionRule      = "crush_rule"
	optionMode      = "compression_mode"
	optionAlgorithm = "compression_algorithm"
	// optionOverwrites lets clients change objects of an erasure-coded pool in part, as files are. It is never taken back.
	optionOverwrites = "allow_ec_overwrites"
	// optionUnset is the value that takes an option away.
	optionUnset = "unset"
)

// writePools asks Ceph for what brings the pools to where they are wanted.
func (p *planner) writePools() {
	if !p.poolsKnown() {
		return
	}
	for _, x := range p.pools {
		if x.DeletionTimestamp == nil && len(x.refusals)+len(x.waits) == 0 {
			p.bringPool(x)
		}
	}
}

// poolCommand is a command of one pool.
func (p *planner) poolCommand(
	x *poolPlan, reason api.Reason, verb string, risk api.Risk, params map[string]string, format string, args ...any,
) {
	p.command(reason, verb, x.object(), params, fmt.Sprintf(format, args...))
	c := &p.plan.Commands[len(p.plan.Commands)-1]
	c.Line, c.Risk = x.line(), engine.HigherRisk(c.Risk, risk)
}

func (p *planner) bringPool(x *poolPlan) {
	have := x.have
	if have == nil || !p.keepsRule(x) {
		p.bringRule(x, api.ReasonDeclared)
	}
	if have == nil {
		params := map[string]string{optionSize: strconv.Itoa(x.size), optionRule: x.rule}
		if x.Spec.ErasureCoded != nil {
			params = map[string]string{paramProfile: x.rule, optionRule: x.rule}
		}
		p.poolCommand(x, api.ReasonDeclared, verbPoolCreate, api.RiskNone, params, "declared with %s over %ss",
			x.layout, x.domain)
		have = x.fresh()
	}
	if app := x.application(); !have.Applications[app] {
		p.poolCommand(x, api.ReasonDeclared, verbPoolEnable, api.RiskNone, map[string]string{paramApplication: app},
			"set its application: %s", app)
	}
	p.bringOptions(x, have)
	p.bringQuota(x, have)
}

// fresh is the pool as Ceph makes it.
func (x *poolPlan) fresh() *Pool {
	made := &Pool{Name: x.Name, Size: x.size, MinSize: x.size - x.size/2, Rule: -1}
	if x.Spec.ErasureCoded != nil {
		made.Erasure, made.Profile, made.MinSize = true, x.rule, x.minSize
	}
	return made
}

// overwrites says whether clients are to change objects of an erasure-coded pool in part.
func (x *poolPlan) overwrites() bool { return x.Spec.ErasureCoded != nil && x.owner != nil }

func (x *poolPlan) application() string {
	if x.Spec.Application == "" {
		return "rbd"
	}
	return x.Spec.Application
}

// bringRule has the CRUSH rule made, and for erasure coding the profile, if they are not there.
func (p *planner) bringRule(x *poolPlan, reason api.Reason) {
	facts := p.seen.PoolFacts
	if p.ruleID(x.rule) >= 0 {
		return
	}
	if ec := x.Spec.ErasureCoded; ec != nil {
		if facts.Profiles[x.rule] == nil {
			p.poolCommand(x, reason, verbProfileSet, api.RiskNone, map[string]string{
				paramProfile: x.rule, "k": strconv.Itoa(int(ec.DataChunks)), "m": strconv.Itoa(int(ec.CodingChunks)),
				paramDomain: x.domain, paramClass: x.Spec.DeviceClass,
			}, "there is no profile %s", x.rule)
		}
		p.poolCommand(x, reason, verbRuleErasure, api.RiskNone,
			map[string]string{optionRule: x.rule, paramDomain: x.domain, paramClass: x.Spec.DeviceClass},
			"there is no CRUSH rule %s", x.rule)
		return
	}
	p.poolCommand(x, reason, verbRuleReplicated, api.RiskNone,
		map[string]string{optionRule: x.rule, paramDomain: x.domain, paramClass: x.Spec.DeviceClass},
		"there is no CRUSH rule %s", x.rule)
}

// ruleID is the number of a CRUSH rule, or -1.
func (p *planner) ruleID(name string) int {
	for id, r := range p.seen.PoolFacts.Rules {
		if r.Name == name {
			return id
		}
	}
	return -1
}

// option is one value of a pool that is to be another.
type option struct {
	name, have, want string
	risk             api.Risk
}

// sizeOptions are the sizes of a pool. What each may be depends on the other, so they go in an order that Ceph allows.
func (x *poolPlan) sizeOptions(have *Pool) []option {
	size := option{optionSize, strconv.Itoa(have.Size), strconv.Itoa(x.size), lowered(have.Size, x.size)}
	least := option{optionMinSize, strconv.Itoa(have.MinSize), strconv.Itoa(x.minSize), lowered(have.MinSize, x.minSize)}
	switch {
	case x.Spec.ErasureCoded != nil:
		return []option{least}
	case x.size < have.Size:
		return []option{least, size}
	}
	return []option{size, least}
}

// lowered is the risk of a number of copies that becomes another.
func lowered(have, want int) api.Risk {
	if want < have {
		return api.RiskRedundancy
	}
	return api.RiskNone
}

// bringOptions sets what differs.
func (p *planner) bringOptions(x *poolPlan, have *Pool) {
	for _, o := range append(x.sizeOptions(have),
		option{optionMode, have.Options[optionMode], x.Spec.Compression.Mode, api.RiskNone},
		option{optionAlgorithm, have.Options[optionAlgorithm], x.Spec.Compression.Algorithm, api.RiskNone},
		option{optionOverwrites, strconv.FormatBool(have.Overwrites), strconv.FormatBool(have.Overwrites || x.overwrites()), api.RiskNone},
	) {
		if o.have != o.want {
			p.poolCommand(x, api.ReasonDeclared, verbPoolSet, o.risk,
				map[string]string{paramOption: o.name, paramValue: valueOrUnset(o.want)}, "%s goes from %s to %s",
				o.name, valueOrUnset(o.have), valueOrUnset(o.want))
		}
	}
	if x.have != nil && !p.keepsRule(x) {
		p.poolCommand(x, api.ReasonDeclared, verbPoolSet, narrowed(p.domainOf(have), x.domain),
			map[string]string{paramOption: optionRule, paramValue: x.rule},
			"moving data: at most one copy or chunk per %s%s (before: %s)",
			x.domain, ofClass(x.Spec.DeviceClass), p.seen.PoolFacts.Rules[have.Rule].Name)
	}
}

// narrowed is the risk of a failure domain that becomes another: none where it is known to be as wide, or wider.
func narrowed(have, want string) api.Risk {
	was, is := slices.Index(domains, have), slices.Index(domains, want)
	if have == want || is >= 0 && is <= was {
		return api.RiskNone
	}
	return api.RiskRedundancy
}

func ofClass(class string) string {
	if class == "" {
		return ""
	}
	return ", and on devices of class " + class
}

func valueOrUnset(value string) string {
	if value == "" {
		return optionUnset
	}
	return value
}

func (p *planner) bringQuota(x *poolPlan, have *Pool) {
	var bytes, objects int64
	if q := x.Spec.Quota.MaxBytes; q != nil {
		bytes = q.Value()
	}
	if q := x.Spec.Quota.MaxObjects; q != nil {
		objects = *q
	}
	stored := p.seen.PoolFacts.Usage[x.Name]
	for _, q := range []struct {
		field              string
		have, want, stored int64
	}{{"max_bytes", have.MaxBytes, bytes, stored.Stored}, {"max_objects", have.MaxObjects, objects, stored.Objects}} {
		if q.have == q.want {
			continue
		}
		risk, text := api.RiskNone, ""
		if q.want > 0 && q.want <= q.stored {
			risk = api.RiskRedundancy
			text = fmt.Sprintf("; %d are stored, so clients cannot write until they delete some or the quota is raised",
				q.stored)
		}
		p.poolCommand(x, api.ReasonDeclared, verbPoolQuota, risk,
			map[string]string{paramOption: q.field, paramValue: strconv.FormatInt(q.want, 10)},
			"quota %s changes from %s to %s%s", q.field, quotaWord(q.have), quotaWord(q.want), text)
	}
}

func quotaWord(n int64) string {
	if n == 0 {
		return "none"
	}
	return strconv.FormatInt(n, 10)
}

// dropRules removes the rules that were made for pools and that no pool uses or is to use.
func (p *planner) dropRules() {
	if !p.poolsKnown() {
		return
	}
	wanted := map[string]bool{}
	for _, x := range p.allPools() {
		wanted[x.rule] = wanted[x.rule] || x.DeletionTimestamp == nil
	}
	wanted[p.defaults.ruleName] = true
	for _, x := range p.ownPools {
		wanted[x.rule] = true
	}
	for _, pool := range p.seen.Pools {
		wanted[p.seen.PoolFacts.Rules[pool.Rule].Name] = true
		wanted[pool.Profile] = true
	}
	unused := func(name string) bool { return strings.HasPrefix(name, rulePrefix) && !wanted[name] }
	rules := map[string]bool{}
	for _, r := range p.seen.PoolFacts.Rules {
		rules[r.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if unused(name) {
			p.dropRule(verbRuleRm, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.seen.PoolFacts.Profiles)) {
		if unused(name) {
			p.dropRule(verbProfileRm, name)
		}
	}
}

func (p *planner) dropRule(verb, name string) {
	p.command(api.ReasonRemoving, verb, name, nil, "no pool uses it")
	p.plan.Commands[len(p.plan.Commands)-1].Line = "rule/" + name
}

// owns says whether the pool in Ceph is the very one that the Pool was told to have: one of its name that was refused, or that was made
// by hand since, is somebody else's and stays.
func (x *poolPlan) owns() bool { return x.have.ID == x.id }

// dropPool takes a pool away that is being deleted; it says whether the Pool may go.
func (p *planner) dropPool(x *poolPlan, s *api.PoolStatus) (gone bool) {
	s.State, s.Message = api.ResourceDeleting, ""
	var wait engine.Objection
	switch failure := p.failureOf(x.line()).Message; {
	case x.Spec.DeletionPolicy != api.DeletionWipe, len(p.have) == 0:
		return true
	case !p.poolsKnown():
		wait = engine.Wait(api.ReasonNotAnswering, "deletion waits: Ceph does not answer")
	case x.have == nil, !x.owns():
		p.tellKept(x)
		return true
	case p.plan.Refused:
		wait = waitsForCluster(p.view.Cluster.Name)
	case p.seen.PoolFacts.Busy == nil:
		wait = engine.Wait(api.ReasonNotAnswering, "deletion waits for the mgr to report its clients")
	case p.seen.PoolFacts.Busy[x.Name] > 0:
		wait = engine.Wait(api.ReasonInUse,
			"deletion waits: clients use the pool (%s a second); to keep the pool and its data, set deletionPolicy to Retain",
			words.Plural(int(p.seen.PoolFacts.Busy[x.Name]), "operation"))
	default:
		s.Message = failure
		p.poolCommand(x, api.ReasonDeleting, verbPoolDelete, api.RiskNone, x.byID(),
			"the Pool was deleted with deletionPolicy Wipe%s", images.Text(p.seen.PoolFacts.Images[x.have.ID]))
		return false
	}
	s.Message = wait.Message
	p.object(x.line(), wait)
	return false
}

// waitsForCluster is what is against the deletion of a resource while the plan as a whole is refused.
func waitsForCluster(cluster string) engine.Objection {
	return engine.Wait(api.ReasonDependencyNotReady,
		"deletion waits: the cluster is refused; see 'holdfast why cluster/%s'", cluster)
}
