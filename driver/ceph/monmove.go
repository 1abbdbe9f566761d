package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// monReplaceAfter is the API's default for spec.ceph.mon.replaceAfter. A machine that boots, or a switch that is replaced, takes
// less; and to bring a mon back is better than to move it, because clients that are off meanwhile know its address.
const monReplaceAfter = 10 * time.Minute

// moveMons changes who the mons are, one mon at a time: another one joins, and when it is in the quorum the one that it replaces
// leaves. What has been done is read from Ceph's own map each time, so that whoever comes after a crash goes on from there:
//
//	joining   its Daemon is there, and no mon's Daemon lists it as a member; it gets everything from the others, and then it
//	          adds itself to the map
//	member    it was seen in the quorum: all Daemons list it, and their ceph.conf has its address
//	leaving   its Daemon says so, and nobody lists it any more; it is taken out of the map, and only then its Daemon goes
//
// So there is always one more in the map rather than one less, and the map changes by one mon at a time, as Ceph demands.
func (p *planner) moveMons() {
	if len(p.members) == 0 || len(p.daemonsOf(TypeMon)) == 0 {
		return
	}
	p.findJoining()
	if !p.reachable() {
		p.tellSilence() // without a quorum the map cannot be changed
		return
	}
	p.takeIn()
	forgotten := dropForgotten(p)
	for _, step := range []func() bool{p.dismissMons, p.awaitJoining, forgotten, p.dropMon, p.addMon} {
		if step() {
			return
		}
	}
}

func (p *planner) isMember(id string) bool {
	return slices.ContainsFunc(p.members, func(m member) bool { return m.ID == id })
}

// findJoining finds the mons that were made to join, and are not known to have done so.
func (p *planner) findJoining() {
	for _, d := range p.daemonsOf(TypeMon) {
		if !p.isMember(d.Spec.ID) && !drains(d) {
			p.joining = append(p.joining, asMember(d))
		}
	}
}

// monsMoving are the mons in Ceph's map that are not members yet, or not any more.
func (p *planner) monsMoving() []string {
	var names []string
	for _, d := range p.daemonsOf(TypeMon) {
		if !p.isMember(d.Spec.ID) && slices.Contains(p.seen.Monmap, d.Spec.ID) {
			names = append(names, label(d))
		}
	}
	return names
}

// takeIn counts those as members that have joined.
func (p *planner) takeIn() {
	joined := func(m member) bool { return slices.Contains(p.seen.Quorum, m.ID) }
	for _, m := range p.joining {
		if joined(m) {
			p.members = append(p.members, m)
			p.decide(api.VerdictDo, api.ReasonJoining, "mon."+m.ID, "in the quorum: adding its address to all configurations")
		}
	}
	p.joining = slices.DeleteFunc(p.joining, joined)
	slices.SortFunc(p.members, func(a, b member) int { return strings.Compare(a.ID, b.ID) })
}

// dismissMons brings those to their end that were told to leave, one after the other. One that is in the map still holds up everything else.
func (p *planner) dismissMons() (busy bool) {
	taken := false // one is taken out of the map by this plan
	for _, d := range p.daemonsOf(TypeMon) {
		switch {
		case !drains(d):
		case slices.Contains(p.seen.Monmap, d.Spec.ID):
			busy, p.moving = true, true
			if reason := p.mayNotLeave(d, taken); reason != "" {
				p.decide(api.VerdictWait, reason, label(d), "%s", removalWaits[reason])
				continue
			}
			taken = true
			p.command(api.ReasonRemoving, verbMonRemove, label(d), nil, p.removedWhy(d))
		case d.DeletionTimestamp == nil:
			p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: "Ceph's map does not have it any more"})
			p.decide(api.VerdictDo, api.ReasonRemoving, label(d), "removed from host %s: Ceph's map does not have it any more",
				d.Spec.Host)
		}
	}
	return busy
}

// removalWaits says what the removal of a mon waits for.
var removalWaits = map[api.Reason]string{
	api.ReasonOneAtATime:   "its removal waits for that of another mon",
	api.ReasonQuorumAtRisk: "its removal waits: without it the other mons would be no quorum",
}

// mayNotLeave is the reason why a mon cannot be taken out of the map now: this plan takes another one
// out, or the others would be no quorum. It is empty when it can.
func (p *planner) mayNotLeave(d *api.Daemon, another bool) api.Reason {
	switch {
	case another:
		return api.ReasonOneAtATime
	case !p.mayRemoveMon(d.Spec.ID):
		return api.ReasonQuorumAtRisk
	}
	return ""
}

// removedWhy says why a mon that was told to leave is taken out of the map.
func (p *planner) removedWhy(d *api.Daemon) string {
	if p.departs(asMember(d)) != "" {
		return "another mon has replaced it"
	}
	return "surplus: the desired number of mons is in the quorum"
}

// mayRemoveMon says whether the others are a majority without it: those that are in the quorum, and are to stay there.
func (p *planner) mayRemoveMon(id string) bool {
	left := 0
	for _, in := range p.seen.Quorum {
		d := p.have[daemonName(p.cluster.Name, "mon", in)]
		if in != id && (d == nil || !told(d) && !drains(d) && !p.stop[d.Name]) {
			left++
		}
	}
	return left >= (len(p.seen.Monmap)-1)/2+1
}

// awaitJoining waits for the mon that is on its way in, unless it is not needed any more or is not to be expected.
func (p *planner) awaitJoining() bool {
	for i, m := range p.joining {
		d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]
		why := p.departs(m)
		switch {
		case p.staying() >= p.monCount():
			why = "not needed any more"
		case why == "" && p.failing(d):
			p.avoid(m.Host)
			why = fmt.Sprintf("gave up on host %s: not joined within %v: %s",
				m.Host, p.waits.MonJoin, cmp.Or(d.Status.Message, "its process keeps ending"))
		case why == "" && p.closed(m.Host):
			why = fmt.Sprintf("host %s is in mode %s", m.Host, p.hosts[m.Host].ModeOf())
		case why == "":
			p.moving = true
			p.decide(api.VerdictWait, api.ReasonJoining, label(d), "%s", p.joiningText(d))
			continue
		}
		p.joining = slices.Delete(p.joining, i, i+1)
		p.leaveMon(d, why)
		return true
	}
	return len(p.joining) > 0
}

// joiningText says how far a mon on its way in is. One that runs for long and does not join mostly meets mons that keep the connection of
// a mon that was at its address before ("handle_existing_connection … stale connection"): when they start anew they let go of it.
func (p *planner) joiningText(d *api.Daemon) string {
	since := d.Status.Started
	if d.Status.State != api.DaemonRunning || since == nil || p.now.Sub(since.Time) < p.waits.MonSlow || len(p.seen.Quorum) == 0 {
		return fmt.Sprintf("being created on host %s, not in the quorum yet", d.Spec.Host)
	}
	return fmt.Sprintf("running on host %s since %s, not in the quorum yet: it still synchronizes, or the other mons keep "+
		"the connection of an earlier mon there; to drop that, run %s",
		d.Spec.Host, since.UTC().Format("15:04:05 MST"), p.restartMonsText())
}

// restartMonsText is how the mons that are in are started again. Ceph does not let the only one stop by itself.
func (p *planner) restartMonsText() string {
	var names []string
	for _, id := range slices.Sorted(slices.Values(p.seen.Quorum)) {
		names = append(names, "mon."+id)
	}
	if len(names) == 1 {
		return fmt.Sprintf("'holdfast daemon restart %s --force' (clients wait until it is back)", names[0])
	}
	return fmt.Sprintf("'holdfast daemon restart %s --wait', then the same for %s, one at a time", names[0], words.Few(names[1:]))
}

// leaveMon has a mon leave for good. Its store goes with it: a mon that has left the map can never join again with what it
// knows, and the others know it all.
func (p *planner) leaveMon(d *api.Daemon, why string) {
	next := *d.DeepCopy()
	memory.Move(&next)
	memory.Set(&next, memory.Drain, memory.Begun)
	next.Spec.OnRemoval = api.DeletionWipe
	p.moving = true
	p.plan.Daemons = append(p.plan.Daemons, engine.DaemonChange{Daemon: next, Reason: "removing it: " + why})
	p.decide(api.VerdictDo, api.ReasonRemoving, label(&next), "removing it: %s", why)
}

// monCount is how many mons are aimed at: those that are wanted, as far as there are hosts for them. An even number survives no
// more failures than one less, and is never aimed at.
func (p *planner) monCount() int {
	count, have := int(p.spec.Mon.Count), len(p.members)
	switch {
	case count%2 == 0:
		return largestOdd(have)
	case count > have:
		return min(count, largestOdd(have+len(p.joining)+len(p.hostsForMons())))
	}
	return count
}

// staying counts the members that need not be replaced.
func (p *planner) staying() (n int) {
	for _, m := range p.members {
		if p.departs(m) == "" {
			n++
		}
	}
	return n
}

// departs says why a mon is to have another one in its place; nothing when it is not. One that is in the quorum is only ever
// moved off a host that is drained, that no StorageNode means any more, or that gave up the mon's address: nothing
// is stopped because of lost contact.
func (p *planner) departs(m member) string {
	h, d := p.hosts[m.Host], p.have[daemonName(p.cluster.Name, "mon", m.ID)]
	switch {
	case p.yielded[m.Host] != "":
		return p.yielded[m.Host]
	case stranded(p, m):
		return fmt.Sprintf("host %s has not had its address %s for more than %v", m.Host, m.Address,
			p.spec.Mon.ReplaceAfter.Duration)
	case slices.Contains(p.seen.Quorum, m.ID):
		return ""
	case h == nil:
		return "host " + m.Host + " is gone"
	case p.hosts[m.Host].ModeOf() == api.HostMaintenance, asked.Stopped(d):
		return "" // expected back
	case !h.AgentHeard() && monset.AwayFor(d, p.now) >= p.spec.Mon.ReplaceAfter.Duration:
		return fmt.Sprintf("out of the quorum, and the agent of host %s disconnected, for %v", m.Host,
			p.spec.Mon.ReplaceAfter.Duration)
	}
	return ""
}

// absence is what is seen of a mon now.
func absence(p *planner, m member) monset.Absence {
	h, asked := p.hosts[m.Host], p.reachable() && len(p.seen.Quorum) > 0
	out := asked && !slices.Contains(p.seen.Quorum, m.ID)
	return monset.Absence{Asked: asked, Out: out, Unreported: h != nil && !h.AgentHeard()}
}

// leastNeeded is a member that was replaced, the missing and the oldest ones first; else one that is missing, else one of a
// failure domain that has the most, else the newest.
func (p *planner) leastNeeded() member {
	rank := func(m member) int {
		out := !slices.Contains(p.seen.Quorum, m.ID)
		switch {
		case p.departs(m) != "" && out:
			return 0
		case p.departs(m) != "":
			return 1
		case out:
			return 2
		}
		return 3
	}
	crowds := p.crowds(p.monHosts())
	least := p.members[0]
	for _, m := range p.members[1:] {
		older, same := monset.Older(m.ID, least.ID), rank(m) == rank(least)
		more := 0
		if same && rank(m) == 3 {
			more = slices.Compare(crowds(m.Host), crowds(least.Host))
		}
		if rank(m) < rank(least) || more > 0 || same && more == 0 && older == (rank(m) < 2) {
			least = m
		}
	}
	return least
}

// dropMon has one mon leave where there are more than are wanted.
func (p *planner) dropMon() bool {
	if len(p.members) <= p.monCount() {
		return false
	}
	m := p.leastNeeded()
	d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]
	if d == nil || !p.mayRemoveMon(m.ID) {
		p.decide(api.VerdictWait, api.ReasonQuorumAtRisk, "mon."+m.ID,
			"surplus mon kept: without it the others would be no quorum")
		return true
	}
	p.members = slices.DeleteFunc(p.members, func(x member) bool { return x == m })
	p.leaveMon(d, cmp.Or(p.departs(m), fmt.Sprintf("spec.ceph.mon.count is %d", p.spec.Mon.Count)))
	return true
}

// addMon makes a mon where one is missing, or is to be replaced.
func (p *planner) addMon() bool {
	if p.staying() >= p.monCount() {
		p.awaitSilent()
		p.tellMonCount()
		return false
	}
	p.tellAvoided()
	places := p.spread(p.monPlaces(), p.monHosts(), 1)
	if len(places) == 0 {
		p.noMonPlace()
		return false
	}
	m := member{ID: p.nextMonID(), Host: places[0].host, Address: places[0].address}
	p.joining, p.moving = append(p.joining, m), true
	p.decide(api.VerdictWait, api.ReasonJoining, "mon."+m.ID, "%s", p.whyMon())
	return true
}

// whyMon says what another mon is for.
func (p *planner) whyMon() string {
	for _, m := range p.members {
		if why := p.departs(m); why != "" {
			return fmt.Sprintf("replaces mon.%s: %s", m.ID, why)
		}
	}
	return fmt.Sprintf("spec.ceph.mon.count is %d", p.spec.Mon.Count)
}

// tellMonCount tells why there are not as many mons as are wanted.
func (p *planner) tellMonCount() {
	if n := len(p.members); n < int(p.spec.Mon.Count) {
		p.decide(api.VerdictSkip, api.ReasonInsufficientNodes, "mons",
			"the cluster has %s although spec.ceph.mon.count is %d: each needs a host of its own, and an even number of "+
				"mons tolerates no more failures than one less", words.Plural(n, "mon"), p.spec.Mon.Count)
	}
}

// noMonPlace tells that a mon is missing for want of a host. Hosts that are drained are told so themselves.
func (p *planner) noMonPlace() {
	for _, m := range p.members {
		if why := p.departs(m); why != "" && p.yielded[m.Host] == "" {
			p.decide(api.VerdictSkip, api.ReasonNoOtherHost, "mon."+m.ID,
				"cannot replace it (%s): no other host may run a mon", why)
		}
	}
}

// awaitSilent tells of mons that will be replaced if their host is not heard of again.
func (p *planner) awaitSilent() {
	if len(p.monPlaces()) == 0 {
		return
	}
	for _, m := range p.members {
		h := p.hosts[m.Host]
		if h != nil && !h.AgentHeard() && !slices.Contains(p.seen.Quorum, m.ID) && p.hosts[m.Host].ModeOf() == api.HostActive {
			p.decide(api.VerdictWait, api.ReasonGracePeriod, "mon."+m.ID,
				"not replaced yet: out of the quorum, and the agent of host %s disconnected, for less than %v",
				m.Host, p.spec.Mon.ReplaceAfter.Duration)
		}
	}
}

// monElsewhere says whether a mon can leave its host: another one is there already or on its way, or has a host to go to.
func (p *planner) monElsewhere() bool {
	onItsWay := slices.ContainsFunc(p.daemonsOf(TypeMon), func(d *api.Daemon) bool { return !p.isMember(d.Spec.ID) && !drains(d) })
	return len(p.members) > p.monCount() || onItsWay || len(p.monPlaces()) > 0
}

// monPlaces are the hosts that may have another mon now: not those where one kept failing of late.
func (p *planner) monPlaces() []place {
	return slices.DeleteFunc(p.hostsForMons(), func(at place) bool { return !p.avoided[at.host].IsZero() })
}

// hostsForMons are the hosts that may have another mon, each at most one. A member whose Daemon was deleted gets it back.
func (p *planner) hostsForMons() []place {
	places, _ := p.places(selection.Mons(&p.spec), "mons")
	var others []*api.Daemon // few of a large fleet
	for _, d := range p.view.Others {
		if d.Spec.Type == TypeMon {
			others = append(others, d)
		}
	}
	return slices.DeleteFunc(places, func(at place) bool {
		return len(p.members) > 0 && monset.IsIPv6(at.address) != monset.IsIPv6(p.members[0].Address) ||
			slices.ContainsFunc(p.daemonsOf(TypeMon), func(d *api.Daemon) bool {
				return keepsMonsOff(p, asMember(d), at)
			}) ||
			slices.ContainsFunc(p.members, func(m member) bool { return keepsMonsOff(p, m, at) }) ||
			slices.ContainsFunc(others, func(d *api.Daemon) bool { return portTaken(at, d) })
	})
}

// newestName is the name that was given last to a mon that is a member or has been one. Each mon's Daemon says it, because the
// one that had it may have left.
func (p *planner) newestName() string {
	all := slices.Clone(p.members)
	for _, d := range p.daemonsOf(TypeMon) {
		all = append(all, member{ID: memory.Of(d, memory.MonNewest)})
		if drains(d) {
			all = append(all, member{ID: d.Spec.ID})
		}
	}
	return monset.Newest(all)
}

// nextMonID is a name that no mon of the cluster has had: what was known by it is never mistaken for another one.
func (p *planner) nextMonID() string {
	all := []member{{ID: p.newestName()}}
	for _, d := range p.daemonsOf(TypeMon) {
		all = append(all, member{ID: d.Spec.ID})
	}
	newest := monset.Newest(all)
	for i := 0; ; i++ {
		if id := ids.Letters(i); monset.Older(newest, id) && !slices.Contains(p.seen.Monmap, id) {
			return id
		}
	}
}
