package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// upkeep is a host on its way to mode Maintenance or Drain, or OSDs of it that leave. Daemons are told to stop in an order that keeps
// Ceph able to judge each step: the active mgr hands over, the OSDs are kept from being marked out, the OSDs stop, and then the rest.
type upkeep struct {
	host    string
	daemons []*api.Daemon // this cluster's on the host, but for those that are being removed
	// withdrawn are the labels of the daemons that leave while the host stays; empty where the host as a whole is meant.
	withdrawn []string
	// reason is why, where it is another one than planner.why finds.
	reason string
}

// objects are what is decided about.
func (u *upkeep) objects() []string {
	if len(u.withdrawn) > 0 {
		return u.withdrawn
	}
	return []string{engine.HostObject(u.host)}
}

// say decides about what is under way.
func (p *planner) say(u *upkeep, verdict api.Verdict, reason api.Reason, format string, args ...any) {
	for _, object := range u.objects() {
		p.decide(verdict, reason, object, format, args...)
	}
}

// await says what is waited for.
func (p *planner) await(u *upkeep, reason api.Reason, format string, args ...any) bool {
	p.moving = true
	p.say(u, api.VerdictWait, reason, format, args...)
	return false
}

// of are the host's daemons of a type.
func (u *upkeep) of(daemonType string) []*api.Daemon {
	return slices.DeleteFunc(slices.Clone(u.daemons), func(d *api.Daemon) bool { return d.Spec.Type != daemonType })
}

// told says whether a daemon is not wanted to run.
func told(d *api.Daemon) bool { return d.Spec.State != api.WantRunning }

// begun says whether a daemon was told to stop by a plan, and not by a person.
func begun(d *api.Daemon) bool { return told(d) && !asked.Stopped(d) }

// ended says whether a daemon that is not wanted to run does not.
func ended(d *api.Daemon) bool {
	return told(d) && (d.Status.State == api.DaemonStopped || d.Status.State == api.DaemonPrepared)
}

func allOf(daemons []*api.Daemon, is func(*api.Daemon) bool) bool {
	return !slices.ContainsFunc(daemons, func(d *api.Daemon) bool { return !is(d) })
}

// closed says whether nothing new may be put on a host.
func (p *planner) closed(host string) bool { return p.hosts[host].ModeOf() != api.HostActive }

// planModes brings hosts into maintenance, one after the other, and out of it again.
func (p *planner) planModes() {
	turn := ""
	for _, u := range p.upkeeps() {
		if p.silentAmid(u) {
			turn = cmp.Or(turn, u.host)
		}
		for _, step := range []func(*upkeep) bool{p.heard, p.mayStop, p.takeTurn(&turn), p.passMgr, p.keepIn, p.stopOSDs, p.stopRest} {
			if !step(u) {
				break
			}
		}
	}
	p.leaveMaintenance()
}

// upkeeps are the hosts in maintenance that have daemons of the cluster: those that have begun come first, so that what was
// begun is brought to its end.
func (p *planner) upkeeps() []*upkeep {
	byHost := map[string]*upkeep{}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if p.hosts[d.Spec.Host].ModeOf() != api.HostMaintenance || d.DeletionTimestamp != nil {
			continue
		}
		if byHost[d.Spec.Host] == nil {
			byHost[d.Spec.Host] = &upkeep{host: d.Spec.Host}
		}
		byHost[d.Spec.Host].daemons = append(byHost[d.Spec.Host].daemons, d)
	}
	return begunFirst(byHost, begun)
}

// begunFirst are the hosts by their names, those before all others of which something is on its way.
func begunFirst(byHost map[string]*upkeep, has func(*api.Daemon) bool) []*upkeep {
	rank := func(u *upkeep) int { return map[bool]int{true: 0, false: 1}[slices.ContainsFunc(u.daemons, has)] }
	return slices.SortedFunc(maps.Values(byHost), func(a, b *upkeep) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.host, b.host))
	})
}

// awaitHost says what a host waits for on its way to its mode, or back.
func (p *planner) awaitHost(host string, reason api.Reason, format string, args ...any) bool {
	p.moving = true
	p.decide(api.VerdictWait, reason, engine.HostObject(host), format, args...)
	return false
}

// refuseMode says why a host cannot have its mode. What was begun is not taken back for that, and waits.
func (p *planner) refuseMode(u *upkeep, reason api.Reason, format string, args ...any) bool {
	if slices.ContainsFunc(u.daemons, begun) {
		return p.await(u, reason, format, args...)
	}
	p.say(u, api.VerdictRefuse, reason, format, args...)
	return false
}

// heard tells an agent that is silent nothing: what is safe to stop now may not be when it hears of it. OSDs that are down
// already are kept from being marked out all the same, for that is what maintenance means.
func (p *planner) heard(u *upkeep) bool {
	if p.hosts[u.host].AgentHeard() {
		return true
	}
	up := p.reachable() && p.anyUp(u)
	switch {
	case !allOf(u.daemons, told):
		if p.reachable() && !up {
			p.wantNoout(u)
		}
		p.say(u, api.VerdictWait, api.ReasonAgentDisconnected,
			"agent disconnected; its daemons will be stopped when it reconnects")
		return false
	case up:
		return p.await(u, api.ReasonAgentDisconnected, "agent disconnected, and Ceph still reports its OSDs as up")
	}
	return true
}

// silentAmid says whether the agent of a host fell silent before its OSDs stopped, which they do as soon as it is heard: it has its turn still.
func (p *planner) silentAmid(u *upkeep) bool {
	return !p.hosts[u.host].AgentHeard() && p.reachable() &&
		slices.ContainsFunc(u.of(TypeOSD), func(d *api.Daemon) bool { return told(d) && p.seenOSD(d).Up })
}

// anyUp says whether Ceph sees one of the host's OSDs up.
func (p *planner) anyUp(u *upkeep) bool {
	return slices.ContainsFunc(u.of(TypeOSD), func(d *api.Daemon) bool { return p.seenOSD(d).Up })
}

func (p *planner) seenOSD(d *api.Daemon) OSD {
	id, err := strconv.Atoi(d.Spec.ID)
	if err != nil || p.seen == nil {
		return OSD{}
	}
	return p.seen.OSDs[id]
}

// mayStop asks whether the cluster can do without what still runs on the host: before anything is touched, and again before
// each step.
func (p *planner) mayStop(u *upkeep) bool {
	if allOf(u.daemons, told) {
		return true
	}
	if !p.reachable() {
		return p.await(u, api.ReasonNotAnswering, "waiting for Ceph: it does not answer, and it must confirm each stop")
	}
	return p.monsAllow(u) && p.osdsAllow(u) && p.mgrsAllow(u) && p.servicesAllow(u)
}

// monsAllow keeps a majority of all mons, those that are out already included, in the quorum.
func (p *planner) monsAllow(u *upkeep) bool {
	running := slices.DeleteFunc(u.of(TypeMon), told)
	if len(running) == 0 {
		return true
	}
	var left, out []string
	for _, m := range p.members {
		d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]
		switch {
		case m.Host == u.host:
		case d == nil || told(d) || asked.Stopped(d) || !slices.Contains(p.seen.Quorum, m.ID):
			out = append(out, "mon."+m.ID)
		default:
			left = append(left, "mon."+m.ID)
		}
	}
	all := max(len(p.seen.Monmap), len(p.members))
	majority := all/2 + 1
	if len(left) >= majority {
		return true
	}
	if moving := p.monsMoving(); len(moving) > 0 {
		return p.await(u, api.ReasonJoining, "waiting for %s to finish joining or leaving the quorum", words.Few(moving))
	}
	also := ""
	if len(out) > 0 {
		also = fmt.Sprintf(" (%s is out of it already)", words.Few(out))
	}
	return p.refuseMode(u, api.ReasonQuorumAtRisk,
		"cannot stop %s: %d of %s would be in the quorum%s, %d are needed",
		label(running[0]), len(left), words.Plural(all, "mon"), also, majority)
}

// mgrsAllow wants another mgr to stand by before the last one stops, where another host may have it.
func (p *planner) mgrsAllow(u *upkeep) bool {
	p.leaving[u.host] = true
	running := slices.DeleteFunc(u.of(TypeMgr), told)
	if len(running) == 0 || running[0].Spec.ID != p.seen.ActiveMgr || p.seen.Standbys > 0 {
		return true
	}
	for _, d := range p.daemonsOf(TypeMgr) {
		if !p.closed(d.Spec.Host) && !told(d) {
			return p.await(u, api.ReasonAwaitingReplacement, "waiting for %s on host %s to stand by before %s stops", label(d),
				d.Spec.Host, label(running[0]))
		}
	}
	if places, _ := p.places(selection.Mgrs(&p.spec), "mgrs"); len(places) > 0 {
		return p.await(u, api.ReasonAwaitingReplacement, "waiting for a standby mgr on another host before %s stops",
			label(running[0]))
	}
	p.decide(api.VerdictSkip, api.ReasonNoOtherHost, label(running[0]),
		"stops with host %s; no other host may run a mgr. Ceph's reports are stale until it returns", u.host)
	return true
}

// osdsAllow goes by Ceph's own answer to "osd ok-to-stop", which has to be about all OSDs that would be down.
func (p *planner) osdsAllow(u *upkeep) bool {
	if allOf(u.of(TypeOSD), told) {
		return true
	}
	answer, asked := p.seen.Stoppable[u.host]
	switch {
	case !asked || !answer.covers(p.downWithout(u.host)):
		return p.await(u, api.ReasonNotAnswering, "checking with Ceph whether its OSDs can be stopped (osd ok-to-stop)")
	case answer.OK:
		return true
	case answer.Unknown:
		return p.await(u, answer.against(), "waiting for Ceph to check its OSDs (osd ok-to-stop): %s", answer.Reason)
	}
	down := ""
	if others := p.othersDown(u.host); len(others) > 0 {
		down = fmt.Sprintf(" (down already: %s)", words.Few(others))
	}
	return p.refuseMode(u, answer.against(),
		"cannot stop its OSDs%s: placement groups would become inactive (Ceph: %q)%s", down,
		answer.Reason, p.scantText())
}

// downWithout are the numbers of the OSDs that would be down if those of a host stopped.
func (p *planner) downWithout(host string) []int {
	return downWithout(p.view.Daemons, p.seen.OSDs, host)
}

// downSoon are the OSDs that are down, or are to be as far as is planned yet.
func (p *planner) downSoon() []int {
	down := p.downWithout("")
	for _, d := range p.daemonsOf(TypeOSD) {
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && p.stop[d.Name] {
			down = append(down, id)
		}
	}
	return down
}

// othersDown names the OSDs of other hosts that are down, or are to be.
func (p *planner) othersDown(host string) []string {
	var names []string
	for _, o := range p.osds {
		d := p.have[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]
		if o.host != host && (!p.seen.OSDs[o.id].Up || d != nil && told(d)) {
			names = append(names, o.label()+" on "+o.host)
		}
	}
	return names
}

// takeTurn lets one host at a time go on. It has its turn until Ceph has seen all of it stop.
func (p *planner) takeTurn(turn *string) func(*upkeep) bool {
	return func(u *upkeep) bool {
		return p.atRest(u) || p.hasTurn(u, turn, "enter maintenance")
	}
}

// hasTurn gives a host the turn, if no other one has it.
func (p *planner) hasTurn(u *upkeep, turn *string, what string) bool {
	if *turn != "" {
		p.say(u, api.VerdictWait, api.ReasonOneAtATime, "waiting for host %s: only one host at a time may %s", *turn, what)
		return false
	}
	*turn = u.host
	return true
}

// atRest says whether nothing of the host runs any more, by the agents' and by Ceph's word.
func (p *planner) atRest(u *upkeep) bool {
	if !allOf(u.daemons, ended) || p.reachable() && p.anyUp(u) {
		return false
	}
	return !slices.ContainsFunc(u.of(TypeMon), func(d *api.Daemon) bool { return p.reachable() && slices.Contains(p.seen.Quorum, d.Spec.ID) })
}

// passMgr has the active mgr hand over before anything stops: a mgr that was only just started knows nothing yet of what may
// be stopped.
func (p *planner) passMgr(u *upkeep) bool {
	for _, d := range u.of(TypeMgr) {
		if !told(d) && p.reachable() && d.Spec.ID == p.seen.ActiveMgr && p.seen.Standbys > 0 {
			p.command(api.ReasonHandingOver, verbMgrFail, label(d), nil, "host "+u.host+" enters maintenance")
			return p.await(u, api.ReasonHandingOver, "%s hands over to a mgr on another host", label(d))
		}
	}
	return true
}

// keepIn has the mons not mark the host's OSDs out while they are down. The OSDs stop when Ceph has taken that (writeStops).
func (p *planner) keepIn(u *upkeep) bool {
	if !p.reachable() {
		return len(u.of(TypeOSD)) == 0 || p.await(u, api.ReasonNotAnswering,
			"waiting for Ceph: it does not answer, and noout may be needed")
	}
	missing, osds := p.wantNoout(u), u.of(TypeOSD)
	for _, d := range osds {
		if !told(d) {
			p.keptIn[d.Name] = len(missing) == 0
		}
	}
	if len(missing) == 0 {
		return true
	}
	p.stopAll(osds)
	return p.await(u, api.ReasonConfiguring, "setting noout for %s", words.Few(missing))
}

// wantNoout asks for the flag where it is missing, and says where.
func (p *planner) wantNoout(u *upkeep) []string {
	missing := []string{}
	for _, d := range u.of(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if _, known := p.seen.OSDs[id]; err == nil && known && !p.seen.OSDs[id].Noout {
			missing = append(missing, label(d))
		}
	}
	if len(missing) > 0 {
		p.command(api.ReasonHostNotActive, verbNoout, strings.Join(missing, ", "), nil, "host "+u.host+" is in maintenance")
	}
	return missing
}

func (p *planner) stopOSDs(u *upkeep) bool {
	osds := u.of(TypeOSD)
	p.stopAll(osds)
	return allOf(osds, ended) && (!p.reachable() || !p.anyUp(u)) ||
		p.await(u, api.ReasonStopping, "waiting for %s to stop", p.joinLabels(osds))
}

func (p *planner) stopRest(u *upkeep) bool {
	rest := slices.DeleteFunc(slices.Clone(u.daemons), func(d *api.Daemon) bool { return d.Spec.Type == TypeOSD })
	p.stopAll(rest)
	return p.atRest(u) || p.await(u, api.ReasonStopping, "waiting for %s to stop", p.joinLabels(rest))
}

func (p *planner) stopAll(daemons []*api.Daemon) {
	for _, d := range daemons {
		p.stop[d.Name] = true
	}
}

func (p *planner) joinLabels(daemons []*api.Daemon) string {
	names := make([]string, len(daemons))
	for i, d := range daemons {
		names[i] = label(d)
	}
	slices.Sort(names)
	return words.Few(names)
}

// wantedState is how far a daemon is to be brought, given its host's mode. On a host in maintenance what does not run is not
// started.
func (p *planner) wantedState(d *api.Daemon) api.WantedState {
	have := p.have[d.Name]
	switch {
	case asked.Stopped(have), p.hosts[d.Spec.Host].ModeOf() != api.HostMaintenance && p.stop[d.Name]:
		return api.WantStopped
	case p.hosts[d.Spec.Host].ModeOf() != api.HostMaintenance:
		return d.Spec.State
	case have == nil || p.stop[d.Name] && !told(have):
		return api.WantStopped
	}
	return have.Spec.State
}
