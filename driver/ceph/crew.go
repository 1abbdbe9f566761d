package ceph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/engine"
	away "github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// crew are daemons of which one can do the work of another: the managers, or those that serve a resource. They keep nothing on disk, each has
// a host of its own, and one too many does no harm.
type crew struct {
	daemonType string
	// name begins the ids of those that serve a resource; those of managers are letters alone.
	name string
	// object is what is decided about, noun what one of them is called, and field where their number is declared.
	object, noun, field string
	// count is how many are wanted, and least how many the service cannot do without.
	count, least int
	// active says whether one does work by Ceph's word, and does not only stand by. Nil where all work alike.
	active func(id string) bool
	// absent counts those that Ceph misses, of so many that are to run.
	absent func(running int) int
	// seats are the daemons that are wanted, sorted by their ids.
	seats []seat
	// left are the hosts of those that go: others are placed there last.
	left []string
	// without says, after a semicolon, on which hosts the program is missing; empty for none.
	without string
}

// seat is a wanted daemon of a crew.
type seat struct {
	id, host, address string
}

// entityOf is what cephx calls a daemon.
func (c *crew) entityOf(id string) string { return entityFor(c.daemonType, id) }

// entityFor is what cephx calls a daemon of a type.
func entityFor(daemonType, id string) string {
	switch daemonType { // some are clients like others to Ceph
	case rgw.Type:
		return rgw.Entity(id)
	case ganesha.Type:
		return nfsPrefix + id
	case rbdmirror.Type:
		return rbdmirror.Entity(id)
	}
	return kindOf(daemonType) + "." + id
}

// owns says whether a daemon is of the crew: its id is a letter, or some, after the name. All managers are of one crew: those of a cluster that
// was adopted have other ids.
func (c *crew) owns(d *api.Daemon) bool {
	if c.name == "" {
		return d.Spec.Type == c.daemonType
	}
	id, ours := strings.CutPrefix(d.Spec.ID, c.name+"-")
	return ours && d.Spec.Type == c.daemonType && id != "" && !strings.Contains(id, "-")
}

func (c *crew) ownsID(id string) bool {
	return c.owns(&api.Daemon{Spec: api.DaemonSpec{Type: c.daemonType, ID: id}})
}

// id is the i-th id.
func (c *crew) id(i int) string {
	if c.name == "" {
		return ids.Letters(i)
	}
	return c.name + "-" + ids.Letters(i)
}

// works says whether one does work by Ceph's word.
func (c *crew) works(id string) bool { return c.active != nil && c.active(id) }

// daemonOf names the Daemon of a seat.
func (p *planner) daemonOf(c *crew, id string) string {
	return daemonName(p.cluster.Name, kindOf(c.daemonType), id)
}

// members are the Daemons of a crew, by name.
func (p *planner) membersOf(c *crew) []*api.Daemon {
	return slices.DeleteFunc(p.daemonsOf(c.daemonType), func(d *api.Daemon) bool { return !c.owns(d) })
}

// man keeps the daemons of a crew that there are, adds some where there are too few, and removes some where there are too many.
func (p *planner) man(c *crew, places []place) {
	count := c.count
	for _, d := range p.membersOf(c) {
		switch why := p.goesFor(d); {
		case why != "" && (d.DeletionTimestamp != nil || p.released[d.Name]):
			if c.left = append(c.left, d.Spec.Host); d.DeletionTimestamp == nil {
				p.dismissOne(api.ReasonRemoving, d, why)
			}
			continue
		case why != "" && !p.refusedHost(d.Spec.Host):
			count++ // it gets another in its place before it goes
		}
		c.seats = append(c.seats, seat{d.Spec.ID, d.Spec.Host, d.Spec.Parameters[ParamAddress]})
	}
	count += p.lostOf(c)
	for len(c.seats) > count && !slices.ContainsFunc(c.seats, p.inMaintenance) && !p.unsteady(c) {
		p.dropSeat(c)
	}
	// Those that stop with their hosts cannot take over; others elsewhere have to.
	count = max(count, p.away(c)+c.least)
	for _, at := range p.byLoad(c, places) {
		if len(c.seats) >= count {
			break
		}
		c.seats = append(c.seats, seat{p.freeID(c), at.host, at.address})
	}
	if n := len(c.seats); n < c.count && len(p.members) > 0 {
		p.decide(api.VerdictSkip, api.ReasonInsufficientNodes, c.object,
			"there %s instead of %s %d: each needs a host of its own, and no more hosts are available%s",
			isAre(words.Plural(n, c.noun), n), c.field, c.count, c.without)
	}
	slices.SortFunc(c.seats, func(a, b seat) int { return strings.Compare(a.id, b.id) })
}

func isAre(text string, n int) string {
	if n == 1 {
		return "is " + text
	}
	return "are " + text
}

// goesFor says why a daemon of a crew is not to stay where it is; nothing where it stays.
func (p *planner) goesFor(d *api.Daemon) string {
	if p.hosts[d.Spec.Host].ModeOf() == api.HostDrain {
		return "the host is drained"
	}
	return p.astray[d.Name]
}

func (p *planner) inMaintenance(s seat) bool { return p.hosts[s.host].ModeOf() == api.HostMaintenance }

// away counts those that stopped with their hosts, or are about to.
func (p *planner) away(c *crew) (n int) {
	for _, s := range c.seats {
		d := p.have[p.daemonOf(c, s.id)]
		if p.inMaintenance(s) && (p.leaving[s.host] || d != nil && told(d)) {
			n++
		}
	}
	return n
}

// dropSeat removes the daemon that was added last, rather one that stands by than one that works.
func (p *planner) dropSeat(c *crew) {
	last := len(c.seats) - 1
	for i := last; i >= 0; i-- {
		if !c.works(c.seats[i].id) {
			last = i
			break
		}
	}
	d := p.have[p.daemonOf(c, c.seats[last].id)]
	c.seats = slices.Delete(c.seats, last, last+1)
	if d.DeletionTimestamp == nil {
		p.dismissOne(api.ReasonRemoving, d, fmt.Sprintf("%s is %d", c.field, c.count))
	}
}

func (p *planner) dismissOne(reason api.Reason, d *api.Daemon, why string) {
	p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: why})
	p.decide(api.VerdictDo, reason, label(d), "removed from host %s: %s", d.Spec.Host, why)
}

// lostOf counts the daemons that are missing in Ceph, on hosts that are silent or gone. Their Daemons stay: nothing is stopped because of lost
// contact, and when the host is heard again the one too many goes.
func (p *planner) lostOf(c *crew) int {
	if !p.reachable() {
		return 0
	}
	running := 0
	var silent []*api.Daemon
	for _, d := range p.membersOf(c) {
		if d.DeletionTimestamp != nil || told(d) {
			continue
		}
		running++
		if h := p.hosts[d.Spec.Host]; !c.works(d.Spec.ID) && (h == nil || !h.AgentHeard()) {
			silent = append(silent, d)
		}
	}
	missing, lost := c.absent(running), 0
	for _, d := range silent {
		switch h := p.hosts[d.Spec.Host]; {
		case lost >= missing:
		case h == nil || p.silentFor(h) >= p.waits.ReplicaLost:
			lost++
		default:
			p.decide(api.VerdictWait, api.ReasonGracePeriod, label(d),
				"not replaced yet: the agent of host %s has been disconnected for less than %v", d.Spec.Host,
				p.waits.ReplicaLost)
		}
	}
	return lost
}

// unsteady says whether the host of one of a crew is silent, or was a short while ago.
func (p *planner) unsteady(c *crew) bool {
	for _, s := range c.seats {
		if away.Unsteady(p.hosts[s.host], p.now, p.waits.ReplicaSteady) {
			p.decide(api.VerdictSkip, api.ReasonSurplusKept, c.object,
				"more replicas than %s: the surplus stays until host %s has been connected for %v",
				c.field, s.host, p.waits.ReplicaSteady)
			return true
		}
	}
	return false
}

// byLoad are the places that have none of the crew, those with the fewest mons and daemons of crews before it
// first, and last those that one has just left.
func (p *planner) byLoad(c *crew, places []place) []place {
	load := map[string]int{}
	for _, m := range slices.Concat(p.members, p.joining) {
		load[m.Host]++
	}
	for _, other := range p.crews {
		for _, s := range other.seats {
			load[s.host]++
		}
	}
	free := slices.DeleteFunc(slices.Clone(places), func(at place) bool {
		return slices.ContainsFunc(c.seats, func(s seat) bool { return s.host == at.host })
	})
	for _, host := range c.left {
		load[host] = math.MaxInt
	}
	slices.SortStableFunc(free, func(a, b place) int { return cmp.Compare(load[a.host], load[b.host]) })
	return free
}

// freeID is the first id that nobody has, one that is being removed included.
func (p *planner) freeID(c *crew) string {
	for i := 0; ; i++ {
		id := c.id(i)
		taken := p.have[p.daemonOf(c, id)] != nil || p.spent(c, id) || slices.ContainsFunc(c.seats, func(s seat) bool { return s.id == id })
		if !taken {
			return id
		}
	}
}

// daemonsOf returns the Daemons of a type, by name.
func (p *planner) daemonsOf(daemonType string) []*api.Daemon {
	var daemons []*api.Daemon
	for i := range p.view.Daemons {
		if d := &p.view.Daemons[i]; d.Spec.Type == daemonType {
			daemons = append(daemons, d)
		}
	}
	return daemons
}
