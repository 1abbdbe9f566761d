package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// planDrains moves data and daemons off hosts that are drained, one host after the other, and takes leave of the OSDs of hosts
// that are gone, and of those whose device was taken from the cluster. An OSD is marked out, and destroyed only when Ceph says that
// nobody would miss it.
func (p *planner) planDrains() {
	turn := ""
	p.grantBegun()
	for _, host := range p.partingHosts() {
		u := &upkeep{host: host}
		for i := range p.view.Daemons {
			if d := &p.view.Daemons[i]; d.Spec.Host == host && d.DeletionTimestamp == nil {
				u.daemons = append(u.daemons, d)
			}
		}
		p.keepParting(u)
		steps := []func(*upkeep) bool{p.mayDrain, p.drainTurn(&turn), p.moveServices, p.moveMgr, p.yieldMon, p.takeOut, p.emptied, p.stopDrained, p.purge, p.dismiss, p.dropBucket}
		if p.hosts[host] == nil {
			steps = []func(*upkeep) bool{p.answers, p.absent, p.takeOut, p.emptied, p.purge, p.dismiss}
		}
		for _, step := range steps {
			if !step(u) {
				break
			}
		}
	}
	p.planWithdrawals(&turn)
	p.endDrains()
}

// keepParting leaves OSDs as far as they were brought, whatever can be done for them now: those that were told to leave, and among
// them those that were found to be empty, which stay stopped.
func (p *planner) keepParting(u *upkeep) {
	for _, d := range u.of(TypeOSD) {
		if drains(d) {
			p.keepLeaving(d)
		}
	}
}

func (p *planner) keepLeaving(d *api.Daemon) {
	p.parting[d.Name] = true
	if d.Spec.Parameters[ParamDrain] == drainEmpty {
		p.empty[d.Name], p.stop[d.Name] = true, true
	}
}

// partingHosts are the hosts to be drained, those that have begun first, and the hosts of OSDs whose Host is gone.
func (p *planner) partingHosts() []string {
	found := map[string]bool{}
	for name := range p.hosts {
		if p.hosts[name].ModeOf() == api.HostDrain {
			found[name] = true
		}
	}
	begun := map[string]bool{}
	for _, d := range p.daemonsOf(TypeOSD) {
		if p.going.host(d.Spec.Host) {
			found[d.Spec.Host] = true
			begun[d.Spec.Host] = begun[d.Spec.Host] || drains(d)
		}
	}
	hosts := slices.Sorted(maps.Keys(found))
	slices.SortStableFunc(hosts, func(a, b string) int {
		switch {
		case begun[a] == begun[b]:
			return 0
		case begun[a]:
			return -1
		}
		return 1
	})
	return hosts
}

// drains says whether an OSD or a mon was told to leave. Of an OSD it stands in its Daemon before it is marked out, so that
// whoever comes later knows that it is Holdfast who marked it so, and may take it back.
func drains(d *api.Daemon) bool { return d.Spec.Parameters[ParamDrain] != "" }

func (p *planner) answers(u *upkeep) bool {
	if !p.reachable() || p.seen.Drain == nil {
		return p.await(u, "Ceph does not answer, and only Ceph can say what may go")
	}
	return true
}

// mayDrain refuses, before anything is touched, what could only end in waiting for ever.
func (p *planner) mayDrain(u *upkeep) bool {
	if len(u.daemons) > 0 && !p.answers(u) {
		return false
	}
	osds := u.of(TypeOSD)
	if slices.ContainsFunc(osds, drains) {
		return true
	}
	refuse := func(format string, args ...any) bool {
		p.say(u, api.VerdictRefuse, format, args...)
		return false
	}
	if mons := slices.DeleteFunc(u.of(TypeMon), drains); len(mons) > 0 && !p.monElsewhere() {
		if len(p.hostsForMons()) > 0 {
			return p.await(u, "%s cannot move yet: on each host that could have a mon one kept failing, and is tried again later", label(mons[0]))
		}
		return refuse("%s runs there, and no other host may run a mon: spec.ceph.mon.count is %d, and each has a host of its own",
			label(mons[0]), p.spec.Mon.Count)
	}
	if mgrs := u.of(TypeMgr); len(mgrs) > 0 && !p.mgrElsewhere() {
		return refuse("%s runs there, and no other host may run a mgr", label(mgrs[0]))
	}
	if why := p.mayMoveServices(u); why != "" {
		return refuse("%s", why)
	}
	if len(osds) == 0 {
		return true
	}
	if p.spaceUnknown() {
		return p.await(u, "Ceph does not say yet how full its OSDs are")
	}
	if why := p.noRoom(u); why != "" {
		return refuse("%s", why)
	}
	return true
}

// mgrElsewhere says whether another host has a mgr, or may have one.
func (p *planner) mgrElsewhere() bool {
	places, _ := p.places(p.spec.Mgr.HostSelector, "mgrs")
	return len(places) > 0 || slices.ContainsFunc(p.daemonsOf(TypeMgr), func(d *api.Daemon) bool { return !p.closed(d.Spec.Host) && !told(d) })
}

// spaceUnknown says whether an OSD that is up has not told how full it is; a mgr that has just become active does not know.
func (p *planner) spaceUnknown() bool {
	for id, o := range p.seen.OSDs {
		if o.Up && p.seen.Drain.Usage[id].Total == 0 {
			return true
		}
	}
	return false
}

// noRoom says why the other hosts cannot hold the data; nothing when they can. Space is compared as a whole: that it is spread
// unevenly may still make Ceph stop, which waits and loses nothing.
func (p *planner) noRoom(u *upkeep) string {
	var left []Place
	var total, used int64
	for _, o := range p.osds {
		seen, usage := p.seen.OSDs[o.id], p.seen.Drain.Usage[o.id]
		stays := !p.leaves(o) && !u.has(o)
		if u.has(o) || seen.UUID == o.uuid && seen.In && seen.Up { // one that may leave, and is not out yet, has its data to give away, too
			used += usage.Used
		}
		if seen.In && seen.Up && stays {
			left = append(left, p.seen.Drain.Places[o.id])
			total += usage.Total
		}
	}
	for _, pool := range p.seen.Pools {
		rule, known := p.seen.Drain.Rules[pool.Rule]
		have := rule.room(left, pool.Size)
		switch domain := rule.domain(); {
		case !known || have >= pool.Size:
		case domain != "":
			return fmt.Sprintf("pool %s keeps %d copies, each on another %s, and without it there would be %s: add one first, or lower the size of the pool",
				pool.Name, pool.Size, domain, words.Plural(have, domain))
		default:
			return fmt.Sprintf("pool %s keeps %d copies, and without it the CRUSH rule %s would find places for %d: add hosts there first, or lower the size "+
				"of the pool", pool.Name, pool.Size, rule.Name, have)
		}
	}
	if full := p.seen.BackfillFull; total == 0 || full > 0 && float64(used) > full*float64(total) {
		return fmt.Sprintf("its data does not fit on the other %s would be %d %% full, and Ceph moves nothing to OSDs that are more than "+
			"%.0f %% full (backfillfull_ratio)", u.others(), 100*used/max(total, 1), 100*full)
	}
	return ""
}

func (p *planner) drainTurn(turn *string) func(*upkeep) bool {
	return func(u *upkeep) bool {
		return len(u.daemons) == 0 || p.hasTurn(u, turn, "are drained")
	}
}

// moveMgr has a mgr elsewhere stand by, and then lets the one on the host go.
func (p *planner) moveMgr(u *upkeep) bool {
	if mgrs := u.of(TypeMgr); len(mgrs) > 0 {
		d := mgrs[0]
		ready := slices.ContainsFunc(p.daemonsOf(TypeMgr), func(x *api.Daemon) bool {
			return !p.closed(x.Spec.Host) && p.astray[x.Name] == "" && x.Spec.State == api.WantRunning && x.Status.State == api.DaemonRunning && x.DeletionTimestamp == nil
		})
		switch {
		case !ready || p.seen.Standbys == 0:
			return p.await(u, "a mgr on another host is to stand by before %s goes", label(d))
		case d.Spec.ID == p.seen.ActiveMgr:
			p.command(verbMgrFail, label(d), nil, p.why(u))
			return p.await(u, "%s hands over to a mgr on another host", label(d))
		}
		p.released[d.Name] = true
		return p.await(u, "%s is being removed", label(d))
	}
	return true
}

// yieldMon has the mon on the host replaced before anything else goes.
func (p *planner) yieldMon(u *upkeep) bool {
	mons := u.of(TypeMon)
	if len(mons) == 0 {
		return true
	}
	p.yielded[u.host] = p.why(u)
	return p.await(u, "%s goes when a mon on another host has taken its place", label(mons[0]))
}

// absent leaves alone what is up although its Host is gone: a machine that still works was not removed for good.
func (p *planner) absent(u *upkeep) bool {
	for _, d := range u.of(TypeOSD) {
		if p.seenOSD(d).Up {
			p.decide(api.VerdictSkip, label(d), "its host %s is not known any more, and yet it is up: it is left alone until it is down", u.host)
			return false
		}
	}
	return true
}

// takeOut notes that the OSDs leave, and then has Ceph move their data. 'osd out' is taken back by 'osd in' without anything to
// remember, where a CRUSH weight of zero would have to be restored; the price is that some data moves once more when the
// host's CRUSH bucket goes.
func (p *planner) takeOut(u *upkeep) bool {
	osds := u.of(TypeOSD)
	noted := true
	var in []string
	for _, d := range osds {
		p.parting[d.Name] = true
		noted = noted && drains(d)
		if p.inCeph(d) && p.seenOSD(d).In {
			in = append(in, label(d))
		}
	}
	if !noted {
		return p.await(u, "%s being told to leave", u.it())
	}
	if len(in) > 0 {
		p.command(verbOSDOut, strings.Join(in, ", "), nil, p.why(u))
		return p.await(u, "%s being marked out", u.it())
	}
	return true
}

// emptied waits until Ceph says that nobody would miss the OSDs. It may say so while copies are still made, so that all
// placement groups have to be clean too.
func (p *planner) emptied(u *upkeep) bool {
	var full []string
	for _, d := range u.of(TypeOSD) {
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && p.inCeph(d) && !p.seen.Drain.Safe[id] {
			full = append(full, label(d))
		}
	}
	switch {
	case len(full) > 0:
		return p.await(u, "data moves from %s to other %s", words.Few(full), u.kind())
	case slices.ContainsFunc(u.of(TypeOSD), p.inCeph) && (p.seen.PGs < p.seen.PGsWanted || p.seen.PGsClean < p.seen.PGs):
		return p.await(u, "copies are still being made: not all placement groups are active+clean")
	}
	return true
}

// inCeph says whether Ceph has a Daemon's OSD in its map.
func (p *planner) inCeph(d *api.Daemon) bool {
	uuid := p.seenOSD(d).UUID
	return uuid != "" && uuid == d.Spec.Parameters[ParamOSDUUID]
}

// stopDrained waits until the OSDs have stopped. Of a machine whose agent is silent Ceph's word has to do: they are empty by
// now, so that nothing is lost if one of them comes up once more, and Ceph purges none that is up.
func (p *planner) stopDrained(u *upkeep) bool {
	osds := u.of(TypeOSD)
	p.stopAll(osds)
	for _, d := range osds {
		p.empty[d.Name] = true
	}
	stopped := allOf(osds, ended) || !p.hosts[u.host].AgentHeard()
	up := slices.ContainsFunc(osds, func(d *api.Daemon) bool { return p.inCeph(d) && p.seenOSD(d).Up })
	return stopped && !up || p.await(u, "waiting for %s to stop", p.joinLabels(osds))
}

// purge has Ceph forget OSDs that are empty and down. The mgr itself looks once more whether they are safe to destroy.
func (p *planner) purge(u *upkeep) bool {
	var left []string
	for _, d := range u.of(TypeOSD) {
		if p.inCeph(d) || p.destroyed(d) {
			left = append(left, label(d))
		}
	}
	if len(left) == 0 {
		return true
	}
	p.command(verbOSDPurge, strings.Join(left, ", "), nil, "it is empty, and "+p.why(u))
	return p.await(u, "Ceph is to forget %s", words.Few(left))
}

// dismiss removes the Daemons. What becomes of the devices is the cluster's deletion policy.
func (p *planner) dismiss(u *upkeep) bool {
	for _, d := range u.of(TypeOSD) {
		p.stop[d.Name] = true
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: p.why(u)})
		p.decide(api.VerdictDo, label(d), "removed from host %s: %s (deletionPolicy %s)", u.host, p.why(u), p.cluster.PolicyOf())
	}
	for _, d := range p.view.Daemons {
		if d.Spec.Host == u.host && d.DeletionTimestamp != nil {
			p.say(u, api.VerdictWait, "%s is being removed", label(&d))
			return false
		}
	}
	return len(u.of(TypeOSD)) == 0 || p.await(u, "%s being removed", u.it())
}

// shortName is what CRUSH calls a host: an OSD puts itself under the short name of the machine that it runs on.
func shortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// dropBucket removes the host from CRUSH when nothing is in it.
func (p *planner) dropBucket(u *upkeep) bool {
	if !p.reachable() || p.seen.Drain == nil {
		return true
	}
	short := shortName(u.host)
	if children, ok := p.seen.Drain.Buckets[short]; ok && children == 0 {
		p.command(verbCrushRm, short, nil, "no OSD is left on it")
		return p.await(u, "CRUSH is to forget it")
	}
	return true
}

// endDrains takes back what was begun on hosts that are not drained any more: the OSDs are marked in, and then it is forgotten
// that they were to leave. One that has stopped is marked in when it is up again: data that Ceph gives to an OSD that is down would be
// missing a copy, and what may stop was asked without it.
func (p *planner) endDrains() {
	var out []string
	for _, d := range p.daemonsOf(TypeOSD) {
		if !drains(d) || p.goes(d) || d.DeletionTimestamp != nil {
			continue
		}
		if p.going.unnamed(placeOf(d)) && !p.closed(d.Spec.Host) {
			p.keepLeaving(d) // it is not plain any more whether it is to leave: it is not brought back for that
			continue
		}
		if !p.reachable() || p.inCeph(d) && !p.seenOSD(d).In {
			p.parting[d.Name] = true
		}
		if seen := p.seenOSD(d); p.reachable() && p.inCeph(d) && !seen.In && seen.Up {
			out = append(out, label(d))
		}
	}
	if len(out) > 0 {
		p.command(verbOSDIn, strings.Join(out, ", "), nil, "it is to stay after all")
		p.moving = true
	}
}
