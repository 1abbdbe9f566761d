package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// planDrains moves data and daemons off hosts that are drained, one host after the other, and takes leave of the OSDs of hosts
// that are gone, and of those whose device was taken from the cluster. An OSD loses its weight in CRUSH, and is purged only when Ceph says
// that nobody would miss it.
func (p *planner) planDrains() {
	turn := ""
	p.grantBegun()
	for _, host := range p.partingHosts() {
		u := &upkeep{host: host}
		for i := range p.view.Daemons {
			if d := &p.view.Daemons[i]; d.Spec.Host == host && d.DeletionTimestamp == nil && p.moved[d.Name] == nil {
				u.daemons = append(u.daemons, d)
			}
		}
		p.keepParting(u)
		steps := []func(*upkeep) bool{p.mayDrain, p.drainTurn(&turn), p.moveServices, p.moveMgr, p.yieldMon, p.takeOut, p.emptied, p.markOut, p.stopDrained, p.purge, p.dismiss, p.dropBucket}
		if p.hosts[host] == nil {
			steps = []func(*upkeep) bool{p.answers, p.absent, p.takeOut, p.emptied, p.purge, p.dismiss}
		}
		for _, step := range steps {
			if !step(u) {
				break
			}
		}
	}
	p.planMoves()
	p.planWithdrawals(&turn)
	p.endDrains()
	p.forgetNumbers()
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
	if memory.Of(d, memory.Drain) == memory.Empty {
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
		if p.going.Host(d.Spec.Host) {
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

// drains says whether an OSD or a mon was told to leave. Of an OSD it stands in its Daemon before its weight is taken, so that
// whoever comes later knows that it is Holdfast who took it, and may give it back.
func drains(d *api.Daemon) bool { return memory.Of(d, memory.Drain) != "" }

func (p *planner) answers(u *upkeep) bool {
	if !p.reachable() || p.seen.Drain == nil {
		return p.await(u, api.ReasonNotAnswering, "waiting for Ceph: it does not answer, and it must confirm each removal")
	}
	return true
}

// mayDrain refuses, before anything is touched, what could only end in waiting for ever.
func (p *planner) mayDrain(u *upkeep) bool {
	if len(u.daemons) > 0 && !p.answers(u) {
		return false
	}
	osds := u.of(TypeOSD)
	if len(osds) > 0 && allOf(osds, drains) {
		return true
	}
	refuse := func(reason api.Reason, format string, args ...any) bool {
		p.say(u, api.VerdictRefuse, reason, format, args...)
		return false
	}
	if mons := slices.DeleteFunc(u.of(TypeMon), drains); len(mons) > 0 && !p.monElsewhere() {
		if len(p.hostsForMons()) > 0 {
			return p.await(u, api.ReasonDaemonFailing,
				"cannot move %s yet: its replacement kept failing on every eligible host; retried later", label(mons[0]))
		}
		return refuse(api.ReasonNoOtherHost,
			"cannot drain: no other host may run %s (spec.ceph.mon.count is %d, one mon per host); add a host or lower the "+
				"count", label(mons[0]), p.spec.Mon.Count)
	}
	if mgrs := u.of(TypeMgr); len(mgrs) > 0 && !p.mgrElsewhere() {
		return refuse(api.ReasonNoOtherHost, "cannot drain: no other host may run %s; add a host for a mgr", label(mgrs[0]))
	}
	if o := p.mayMoveServices(u); !o.None() {
		return refuse(o.Reason, "%s", o.Message)
	}
	if len(osds) == 0 {
		return true
	}
	if p.spaceUnknown() {
		return p.await(u, api.ReasonNotAnswering, "Ceph does not say yet how full its OSDs are")
	}
	if o := p.noRoom(u); !o.None() {
		return refuse(o.Reason, "%s", o.Message)
	}
	for _, d := range osds {
		p.granted[placeOf(d)] = true
	}
	return true
}

// mgrElsewhere says whether another host has a mgr, or may have one.
func (p *planner) mgrElsewhere() bool {
	places, _ := p.places(selection.Mgrs(&p.spec), "mgrs")
	return len(places) > 0 || slices.ContainsFunc(p.daemonsOf(TypeMgr), func(d *api.Daemon) bool { return !p.closed(d.Spec.Host) && !told(d) })
}

func (p *planner) drainTurn(turn *string) func(*upkeep) bool {
	return func(u *upkeep) bool {
		return len(u.daemons) == 0 || p.hasTurn(u, turn, "be drained")
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
			return p.await(u, api.ReasonAwaitingReplacement, "waiting for a standby mgr on another host before %s is removed",
				label(d))
		case d.Spec.ID == p.seen.ActiveMgr:
			p.command(api.ReasonHandingOver, verbMgrFail, label(d), nil, p.why(u))
			return p.await(u, api.ReasonHandingOver, "%s hands over to a mgr on another host", label(d))
		}
		p.released[d.Name] = true
		return p.await(u, api.ReasonRemoving, "%s is being removed", label(d))
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
	return p.await(u, api.ReasonAwaitingReplacement, "%s is removed when its replacement is in the quorum", label(mons[0]))
}

// absent leaves alone what is up although its Host is gone: a machine that still works was not removed for good.
func (p *planner) absent(u *upkeep) bool {
	for _, d := range u.of(TypeOSD) {
		if p.seenOSD(d).Up {
			p.decide(api.VerdictSkip, api.ReasonKeptAsIs, label(d),
				"host %s was deleted but the OSD is up: left alone until it is down", u.host)
			return false
		}
	}
	return true
}

// takeOut notes that the OSDs leave, with the weights that they have in CRUSH, and then takes these from them: Ceph moves their data to where
// it stays. An OSD that is only marked out keeps its part in the weight of its host, so that its data would first move to the host's other
// OSDs and, when it is purged, once more (docs/decisions/2026-11-22-drain-by-weight.md). One whose number
// Ceph keeps for another disk keeps its place and its weight: it is marked out.
func (p *planner) takeOut(u *upkeep) bool {
	noted := true
	var names, out []string
	weights := map[string]string{}
	for _, d := range u.of(TypeOSD) {
		p.parting[d.Name] = true
		keeps := keepsNumber(p, d)
		noted = noted && drains(d) && keeps == (memory.Of(d, memory.Replaced) != "")
		at, placed := p.crushPlace(d)
		was := memory.Of(d, memory.CrushWeight)
		switch {
		case keeps && p.inCeph(d) && p.seenOSD(d).In:
			out = append(out, label(d))
		case keeps && placed && at.Weight == 0 && was != "" && was != weightText(0):
			names, weights[label(d)] = append(names, label(d)), was
		case !keeps && placed && at.Weight > 0:
			names, weights[label(d)] = append(names, label(d)), weightText(0)
		}
	}
	switch {
	case !noted:
		return p.await(u, api.ReasonRemoving, "marking %s for removal", u.it())
	case len(out) > 0:
		p.command(api.ReasonRemoving, verbOSDOut, strings.Join(out, ", "), nil, "Ceph keeps its number, and "+p.why(u))
	}
	if len(names) > 0 {
		p.command(api.ReasonRemoving, verbReweight, strings.Join(names, ", "), weights, p.why(u))
		return p.await(u, api.ReasonConfiguring, "setting CRUSH weight 0: %s", u.it())
	}
	return len(out) == 0 || p.await(u, api.ReasonConfiguring, "marking out: %s", u.it())
}

// crushPlace is where CRUSH has a Daemon's OSD.
func (p *planner) crushPlace(d *api.Daemon) (at Place, placed bool) {
	id, err := strconv.Atoi(d.Spec.ID)
	if err != nil || !p.inCeph(d) || p.seen.Drain == nil {
		return Place{}, false
	}
	at, placed = p.seen.Drain.Places[id]
	return at, placed
}

// weightText is a weight as the mons want it: with a point, and exact, since theirs are multiples of 1/65536.
func weightText(weight float64) string {
	text := strconv.FormatFloat(weight, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// noteWeight keeps in a Daemon what its OSD had before it was told to leave.
func (p *planner) noteWeight(d, have *api.Daemon) {
	if have != nil && drains(have) {
		for _, name := range []memory.Name{memory.CrushWeight, memory.WasOut} {
			memory.Set(d, name, memory.Of(have, name))
		}
		return
	}
	if at, placed := p.crushPlace(d); placed {
		memory.Set(d, memory.CrushWeight, weightText(at.Weight))
		if !p.seenOSD(d).In {
			memory.Set(d, memory.WasOut, "true")
		}
	}
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
	switch held := heldByFlags(p); {
	case len(full) > 0 && held != "":
		return p.await(u, api.ReasonChangedOutside, "data of %s waits: %s", words.Few(full), held)
	case len(full) > 0:
		return p.await(u, api.ReasonMovingData, "data moves from %s to other %s", words.Few(full), u.kind())
	case slices.ContainsFunc(u.of(TypeOSD), p.inCeph) && (p.seen.PGs < p.seen.PGsWanted || p.seen.PGsClean < p.seen.PGs) && held != "":
		return p.await(u, api.ReasonChangedOutside, "recovery waits: %s", held)
	case slices.ContainsFunc(u.of(TypeOSD), p.inCeph) && (p.seen.PGs < p.seen.PGsWanted || p.seen.PGsClean < p.seen.PGs):
		return p.await(u, api.ReasonDataNotClean, "recovery in progress: not all placement groups are active+clean")
	}
	return true
}

// markOut has OSDs that are empty be out, which moves nothing: that one which is in is down is something that Ceph warns of.
func (p *planner) markOut(u *upkeep) bool {
	var in []string
	for _, d := range u.of(TypeOSD) {
		if p.inCeph(d) && p.seenOSD(d).In {
			in = append(in, label(d))
		}
	}
	if len(in) > 0 {
		p.command(api.ReasonRemoving, verbOSDOut, strings.Join(in, ", "), nil, "it is empty, and "+p.why(u))
		return p.await(u, api.ReasonConfiguring, "marking out: %s", u.it())
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
	return stopped && !up || p.await(u, api.ReasonStopping, "waiting for %s to stop", p.joinLabels(osds))
}

// purge has Ceph forget OSDs that are empty and down. The mgr itself looks once more whether they are safe to destroy.
func (p *planner) purge(u *upkeep) bool {
	left := map[string][]string{}
	for _, d := range u.of(TypeOSD) {
		switch keeps := keepsNumber(p, d); {
		case keeps && p.inCeph(d):
			left[verbOSDDestroy] = append(left[verbOSDDestroy], label(d))
		case !keeps && (p.inCeph(d) || p.destroyed(d)):
			left[verbOSDPurge] = append(left[verbOSDPurge], label(d))
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(left)) {
		p.command(api.ReasonRemoving, verb, strings.Join(left[verb], ", "), nil, "it is empty, and "+p.why(u))
	}
	return len(left) == 0 || p.await(u, api.ReasonConfiguring, "removing %s from Ceph",
		words.Few(slices.Sorted(slices.Values(slices.Concat(left[verbOSDDestroy], left[verbOSDPurge])))))
}

// dismiss removes the Daemons. What becomes of the devices is the cluster's deletion policy.
func (p *planner) dismiss(u *upkeep) bool {
	osds := u.of(TypeOSD)
	p.stopAll(osds)
	if engine.DisksKept(p.hosts[u.host]) && slices.ContainsFunc(osds, wiped) {
		return p.await(u, api.ReasonRemoving, "recording that the disks are kept: %s", u.it())
	}
	for _, d := range osds {
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: p.why(u)})
		p.decide(api.VerdictDo, api.ReasonRemoving, label(d), "removed from host %s: %s (deletionPolicy %s)", u.host,
			p.why(u), p.policyOn(u.host))
	}
	for _, d := range p.view.Daemons {
		if d.Spec.Host == u.host && d.DeletionTimestamp != nil {
			p.say(u, api.VerdictWait, api.ReasonRemoving, "%s is being removed", label(&d))
			return false
		}
	}
	return len(u.of(TypeOSD)) == 0 || p.await(u, api.ReasonRemoving, "%s being removed", u.it())
}

// policyOn is what becomes of the data on a host that is removed from there.
func (p *planner) policyOn(host string) api.DeletionPolicy {
	return engine.PolicyOn(p.cluster, p.hosts[host])
}

func wiped(d *api.Daemon) bool { return d.Spec.OnRemoval == api.DeletionWipe }

// dropBucket removes the host from CRUSH when nothing is in it.
func (p *planner) dropBucket(u *upkeep) bool {
	if !p.reachable() || p.seen.Drain == nil {
		return true
	}
	short := p.crushHome(u.host)
	for _, id := range orphans(p.view, p.seen) {
		if p.seen.Destroyed[id] == short {
			return p.await(u, api.ReasonConfiguring, "purging %s from Ceph: destroyed and not replaced", osdName(id))
		}
	}
	if children, ok := p.seen.Drain.Buckets[short]; ok && children == 0 {
		p.command(api.ReasonRemoving, verbCrushRm, short, nil, "it has no OSDs any more")
		return p.await(u, api.ReasonConfiguring, "removing it from CRUSH")
	}
	return true
}

// endDrains takes back what was begun on hosts that are not drained any more: the OSDs are given the weight that they had, and then it is
// forgotten that they were to leave. One that has stopped, or was told to on a host in maintenance, is given it when it is up again: data that
// Ceph gives to an OSD that is down would be missing a copy, and what may stop was asked without it. A weight that somebody else has given it
// meanwhile stays.
func (p *planner) endDrains() {
	var in, heavy []string
	weights := map[string]string{}
	for _, d := range p.daemonsOf(TypeOSD) {
		if !drains(d) || p.goes(d) || d.DeletionTimestamp != nil || p.moved[d.Name] != nil {
			continue
		}
		if p.going.Unnamed(placeOf(d).drive()) && !p.closed(d.Spec.Host) {
			p.keepLeaving(d) // it is not plain any more whether it is to leave: it is not brought back for that
			continue
		}
		was := memory.Of(d, memory.CrushWeight)
		at, placed := p.crushPlace(d)
		light := placed && at.Weight == 0 && was != "" && was != weightText(0)
		out := p.inCeph(d) && !p.seenOSD(d).In && memory.Of(d, memory.WasOut) == ""
		p.parting[d.Name] = !p.reachable() || p.seen.Drain == nil || light || out
		if !p.seenOSD(d).Up || told(d) && p.closed(d.Spec.Host) {
			continue
		}
		if light {
			heavy, weights[label(d)] = append(heavy, label(d)), was
		}
		if out {
			in = append(in, label(d))
		}
	}
	p.bringBack(in, heavy, weights)
}

// bringBack marks OSDs in and gives them their weights.
func (p *planner) bringBack(in, heavy []string, weights map[string]string) {
	const why = "drain cancelled: restoring its weight"
	if len(in) > 0 {
		p.command(api.ReasonBackInUse, verbOSDIn, strings.Join(in, ", "), nil, why)
	}
	if len(heavy) > 0 {
		p.command(api.ReasonBackInUse, verbReweight, strings.Join(heavy, ", "), weights, why)
	}
	p.moving = p.moving || len(in)+len(heavy) > 0
}
