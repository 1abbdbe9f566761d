package ceph

import (
	"fmt"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/location"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// poolPlan is a Pool while it is planned.
type poolPlan struct {
	*api.Pool
	// owner is the resource that it is a part of, such as a Filesystem; nil for a Pool that stands for itself.
	owner api.Resource
	// id is the number of the pool in Ceph that was recorded; zero where none was, or its loss was accepted.
	id int64
	// have is the pool in Ceph; nil when there is none, or nobody can tell. lost says how the one that was recorded is gone.
	have *Pool
	lost *loss
	// layout says how the objects lie, and size how many copies or chunks of one there are.
	layout        string
	size, minSize int
	// domain is what holds at most one of them, and rule the CRUSH rule that sees to it.
	domain, rule string
	// refusals say why it cannot be as it is declared, waits what it waits for; next is what helps where OSDs come.
	refusals, waits objections
	next            writes.Coming
	unscaled        writes.Word // what its device class does to Ceph's autoscaler
}

// object is what the pool's commands are about.
func (x *poolPlan) object() string { return engine.ResourceObject(x.Pool) }

// holdNew keeps pools from being made that are not there yet: what they are a part of is refused.
func holdNew(pools []*poolPlan) {
	for _, x := range pools {
		if x.have == nil {
			x.waits.wait(api.ReasonDependencyNotReady, "%s is refused", engine.ResourceObject(x.owner))
		}
	}
}

// line is what they depend on: pools do not depend on each other, but for those of one owner.
func (x *poolPlan) line() string {
	if x.owner != nil {
		return engine.ResourceObject(x.owner)
	}
	return x.object()
}

// defaultPoolSize is the number of copies of a pool of which nothing is said.
const defaultPoolSize = 3

// poolRoot is the root of CRUSH that pools are spread below.
const poolRoot = location.Root

// planPools finds how each Pool is to be, and refuses those that cannot be so.
func (p *planner) planPools() {
	for _, pool := range engine.OfKind[*api.Pool](p.view.Resources) {
		x := &poolPlan{Pool: pool, id: p.recorded(pool.Status.ID)}
		p.pools = append(p.pools, x)
		if lost := p.findPools(pool, x); len(lost) > 0 {
			x.refusals.add(lost.refusal(pool))
		}
		p.judgePlace(x)
		p.object(x.line(), x.refusals...)
		p.object(x.line(), x.waits...)
		if x.takesOver() {
			p.decide(api.VerdictDo, api.ReasonAdopted, x.line(),
				"pool %s already exists in Ceph: Holdfast adopts it and changes only what the Pool declares", x.Name)
		}
	}
}

// takesOver says whether the Pool finds a pool of its name that was never its own. One that it is just making is.
func (x *poolPlan) takesOver() bool {
	making := x.id == 0 && x.Status.State == api.ResourceCreating
	return x.DeletionTimestamp == nil && x.have != nil && !x.owns() && !making && len(x.refusals) == 0
}

// recorded is a number that a status has of the cluster's own Ceph. Of a cluster that is yet to be made it is that of an earlier one.
func (p *planner) recorded(id int64) int64 {
	if len(p.have) == 0 {
		return 0
	}
	return id
}

// judgePlace finds how a pool is to be, and whether it can be so. findPools was there before.
func (p *planner) judgePlace(x *poolPlan) {
	x.shape()
	if x.DeletionTimestamp == nil {
		p.chooseDomain(x)
	}
	if x.DeletionTimestamp == nil && x.lost == nil {
		p.checkPool(x)
		p.tellOutside(x)
	}
}

// poolsKnown says whether Ceph was asked for what is to be known of pools.
func (p *planner) poolsKnown() bool { return p.reachable() && p.seen.PoolFacts != nil }

func (p *planner) poolNamed(name string) *Pool {
	if i := slices.IndexFunc(p.seen.Pools, func(x Pool) bool { return x.Name == name }); i >= 0 {
		return &p.seen.Pools[i]
	}
	return nil
}

// shape reads the spec. The API server sets the defaults; a plan of a file that was never sent to it has to do without.
func (x *poolPlan) shape() {
	if ec := x.Spec.ErasureCoded; ec != nil {
		// What Ceph takes by itself (OSDMonitor::prepare_pool_size): one more than what data needs, where that leaves one to be lost.
		x.size, x.minSize = int(ec.DataChunks+ec.CodingChunks), int(ec.DataChunks+min(1, ec.CodingChunks-1))
		x.layout = fmt.Sprintf("%d+%d", ec.DataChunks, ec.CodingChunks)
		return
	}
	x.size = defaultPoolSize
	if r := x.Spec.Replicated; r != nil && r.Size > 0 {
		x.size = int(r.Size)
	}
	// osd_pool_default_min_size is 0, which Ceph reads so (OSDMap, get_osd_pool_default_min_size).
	x.minSize = x.size - x.size/2
	if r := x.Spec.Replicated; r != nil && r.MinSize != nil {
		x.minSize = int(*r.MinSize)
	}
	x.layout = words.Plural(x.size, "copy")
}

// domains are the levels that the failure domain grows through by itself, the widest first.
var domains = []string{"rack", "host", "osd"}

// chooseDomain takes the failure domain that is declared, or the widest that has enough buckets. It is never made less wide than it is, and not
// chosen or changed while more OSDs are on their way. By itself a pool that is there does not come to be spread over racks, whatever hosts
// are labelled with; a new one is where all OSDs are in racks, since those that are in none would get nothing of it.
func (p *planner) chooseDomain(x *poolPlan) {
	x.domain = x.Spec.FailureDomain
	if was := p.domainOf(x.have); x.domain == "" && was != "" && (!slices.Contains(domains, was) || p.osdsComing()) {
		x.domain = was
	}
	choice := domains
	if !p.poolsKnown() || p.domainOf(x.have) != domains[0] && (x.have != nil || len(p.outside(x, domains[0])) > 0) {
		choice = choice[1:] // which hosts are in which rack is Ceph's to tell
	}
	for i := 0; x.domain == "" && i < len(choice); i++ {
		if p.domainOf(x.have) == choice[i] || p.room(x, choice[i]) >= x.size {
			x.domain = choice[i]
		}
	}
	if x.domain == "" {
		x.domain = "osd"
	}
	x.rule = ruleName(x)
}

// domainOf is the level that a pool's copies are spread over; empty where nobody can tell.
func (p *planner) domainOf(pool *Pool) string {
	if pool == nil || !p.poolsKnown() {
		return ""
	}
	return p.seen.PoolFacts.Rules[pool.Rule].Domain()
}

// ruleName is the CRUSH rule, and for erasure coding the profile, of all pools that are spread alike.
func ruleName(x *poolPlan) string {
	name := rulePrefix + x.domain
	if x.Spec.DeviceClass != "" {
		name += "-" + x.Spec.DeviceClass
	}
	if ec := x.Spec.ErasureCoded; ec != nil {
		name += fmt.Sprintf("-ec-%d-%d", ec.DataChunks, ec.CodingChunks)
	}
	return name
}

// rulePrefix marks the rules and profiles that are made for Pools.
const rulePrefix = "holdfast-"

// room is how many copies or chunks find a place. While Ceph cannot be asked, what is declared counts, and what is not known is taken for enough.
func (p *planner) room(x *poolPlan, domain string) int {
	if !p.poolsKnown() {
		facts := p.confFacts()
		switch domain {
		case "osd":
			return facts.osds
		case "host":
			return facts.osdHosts
		}
		if slices.Contains(location.Levels, domain) {
			return p.labelledWith(domain)
		}
		return x.size
	}
	places := p.openPlaces()
	rule := Rule{Takes: []Take{{Root: poolRoot, Class: x.Spec.DeviceClass, Steps: []Choose{{Type: domain}}}}}
	return rule.Room(places, x.size)
}

// howToLabel says how buckets of a level come to be, where hosts are labelled with them.
func howToLabel(level string) string {
	if !slices.Contains(location.Levels, level) {
		return ""
	}
	return " (set the location of a host with 'holdfast host label HOST --location " + level + "=NAME' before its " +
		"first OSD starts)"
}

// openPlaces are where OSDs are that can be given data.
func (p *planner) openPlaces() (places []Place) {
	for id, place := range p.seen.PoolFacts.Places {
		if o := p.seen.OSDs[id]; o.In && o.Up && !p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(id))] {
			places = append(places, place)
		}
	}
	return places
}

// checkPool says why a pool cannot be as it is declared, or what it waits for.
func (p *planner) checkPool(x *poolPlan) {
	erasure := x.Spec.ErasureCoded != nil
	stranded := p.strands(x)
	switch room := p.room(x, x.domain); {
	case x.have != nil && x.have.Erasure != erasure:
		x.refuse(api.ReasonConflict,
			"Ceph already has a pool of this name that is %s, which cannot change: choose another name, or declare the pool "+
				"like that", kindOfPool(x.have.Erasure))
	case x.have != nil && erasure && !p.sameChunks(x):
		x.refuse(api.ReasonConflict,
			"Ceph already has a pool of this name with other chunks (profile %s): choose another name, or declare the pool "+
				"like that", x.have.Profile)
	case p.poolsKnown() && p.ruleID(x.rule) >= 0 && !x.fits(p.seen.PoolFacts.Rules[p.ruleID(x.rule)]):
		x.refuse(api.ReasonConflict,
			"Ceph has a CRUSH rule %s with other steps than Holdfast's rule of that name: rename it with 'holdfast ceph "+
				"osd crush rule rename'", x.rule)
	case x.have == nil && x.Spec.FailureDomain == "" && p.poolsKnown() && p.osdsComing():
		x.next = comingNext(p)
		x.waits.wait(x.next.Reason, "the failure domain is chosen when all declared OSDs are up: %s", x.next.Message)
	case room >= x.size && len(stranded) > 0:
		p.refuseStranded(x, stranded)
	case room >= x.size:
	case len(p.have) == 0 && (p.settling() > 0 || room == 0):
		x.waits.wait(p.fewDeclared(), "it needs %s, but only %d %s declared so far", p.bucketWords(x, x.size), room,
			map[bool]string{true: "is", false: "are"}[room == 1])
	case p.poolsKnown() && p.osdsComing():
		x.next = comingNext(p)
		x.waits.wait(x.next.Reason, "it needs %s, but there %s so far: %s", p.bucketWords(x, x.size), writes.Are(room),
			x.next.Message)
	case !p.poolsKnown() && len(p.have) > 0: // nobody can tell
	case x.have == nil || p.changesPlace(x):
		x.refuse(api.ReasonInsufficientNodes, "it needs %s, one per copy or chunk, but there %s: add some%s, or declare "+
			"fewer copies or a smaller failureDomain", p.bucketWords(x, x.size), writes.Are(room), howToLabel(x.domain))
	}
}

// fewDeclared is why a cluster that is yet to be made has too few places for a pool.
func (p *planner) fewDeclared() api.Reason {
	if p.settling() > 0 {
		return api.ReasonSettling
	}
	return api.ReasonInsufficientNodes
}

func (x *poolPlan) refuse(reason api.Reason, format string, args ...any) {
	x.refusals.refuse(reason, format, args...)
}

func kindOfPool(erasure bool) string {
	if erasure {
		return "erasure-coded"
	}
	return "replicated"
}

// bucketWords are so many buckets of the failure domain in words, such as "3 hosts with OSDs of class ssd".
func (p *planner) bucketWords(x *poolPlan, n int) string {
	text := words.Plural(n, x.domain)
	if x.domain == "osd" {
		text = words.Plural(n, "OSD")
	}
	switch class := x.Spec.DeviceClass; {
	case class != "" && x.domain == "osd":
		text += " of class " + class
	case class != "":
		text += " with OSDs of class " + class
	case x.domain != "osd":
		text += " with OSDs"
	}
	return text
}

// changesPlace says whether a pool that is there is to be spread otherwise, or wider.
func (p *planner) changesPlace(x *poolPlan) bool { return x.have.Size < x.size || !p.keepsRule(x) }

// keepsRule says whether the CRUSH rule of a pool that is there does what is wanted, by whatever name. One that was made by hand and
// spreads over several levels stays as long as nothing is said of them.
func (p *planner) keepsRule(x *poolPlan) bool {
	rule := p.seen.PoolFacts.Rules[x.have.Rule]
	if rule.Domain() == "" && x.Spec.FailureDomain == "" && x.Spec.DeviceClass == "" {
		return true
	}
	return x.fits(rule)
}

// fits says whether a CRUSH rule does what is wanted.
func (x *poolPlan) fits(r Rule) bool {
	return r.Domain() == x.domain && r.Takes[0].Root == poolRoot && r.Takes[0].Class == x.Spec.DeviceClass
}

// sameChunks says whether an erasure-coded pool that is there has the chunks that are wanted.
func (p *planner) sameChunks(x *poolPlan) bool {
	profile, ec := p.seen.PoolFacts.Profiles[x.have.Profile], x.Spec.ErasureCoded
	return profile["k"] == strconv.Itoa(int(ec.DataChunks)) && profile["m"] == strconv.Itoa(int(ec.CodingChunks))
}

// osdsComing says whether OSDs are declared that are not up and in yet.
func (p *planner) osdsComing() bool {
	return slices.ContainsFunc(p.nodes, (*node).comes) || slices.ContainsFunc(p.osds, p.isComing)
}

func (n *node) comes() bool { return n.toCome > 0 }

// isComing says whether an OSD is not up and in yet, or not in CRUSH.
func (p *planner) isComing(o *osd) bool {
	in, known := p.seen.OSDs[o.id]
	_, placed := p.seen.PoolFacts.Places[o.id]
	absent := !known || in.In && !in.Up || !placed
	return absent && !o.leaving && !p.nowhere[o.host] && !p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]
}

// comingNext says which OSDs are waited for, and what helps if they do not come by themselves.
func comingNext(p *planner) writes.Coming {
	if i := slices.IndexFunc(p.nodes, (*node).comes); i >= 0 {
		n := p.nodes[i]
		return writes.NodeComing(n.what(), n.object(), n.Host == nil, slices.Concat(n.Waits, n.waits))
	}
	i := slices.IndexFunc(p.osds, p.isComing)
	o := p.osds[i]
	h := p.hosts[o.host]
	return writes.OSDComing(o.label(), o.host, h != nil && h.ModeOf() == api.HostMaintenance)
}
