package ceph

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// goes says whether a daemon is not to stay where it is: its host leaves, or it is an OSD whose device was taken from the cluster, and is not on another
// host now.
func (p *planner) goes(d *api.Daemon) bool {
	if p.moved[d.Name] != nil {
		return false
	}
	return p.going.Host(d.Spec.Host) || d.Spec.Type == TypeOSD && p.going.Withdrawn(placeOf(d).drive())
}

// planWithdrawals takes leave of the OSDs whose device no StorageNode names any more, all of a host together: their data would
// otherwise move to the next one that leaves.
func (p *planner) planWithdrawals(turn *string) {
	p.noteLost()
	p.withdrawServices()
	p.tellHeldUp()
	p.planReplacements()
	for _, u := range p.withdrawals() {
		p.keepParting(u)
		for _, step := range []func(*upkeep) bool{
			p.working, p.mourn, p.answers, p.mayWithdraw, p.drainTurn(turn), p.takeOut, p.emptied, p.markOut, p.stopDrained, p.purge, p.dismiss,
		} {
			if !step(u) {
				break
			}
		}
	}
}

// withdrawals are the hosts that stay with OSDs that do not, those that have begun first.
func (p *planner) withdrawals() []*upkeep {
	byHost := map[string]*upkeep{}
	for _, d := range p.daemonsOf(TypeOSD) {
		if host := d.Spec.Host; !p.going.Host(host) && p.goes(d) && p.replaced[d.Name] == "" {
			if byHost[host] == nil {
				byHost[host] = &upkeep{host: host}
			}
			u := byHost[host]
			u.withdrawn = append(u.withdrawn, label(d))
			if d.DeletionTimestamp == nil {
				u.daemons = append(u.daemons, d)
			}
		}
	}
	return begunFirst(byHost, drains)
}

// tellHeldUp tells of OSDs that would leave if it were plain what each entry of the nodes means.
func (p *planner) tellHeldUp() {
	for _, d := range p.daemonsOf(TypeOSD) {
		at := placeOf(d)
		if by := p.going.HeldUpBy(at.host); by != "" && p.going.Unnamed(at.drive()) && !p.going.Host(at.host) {
			p.decide(api.VerdictSkip, api.ReasonNodeUnusable, label(d),
				"no StorageNode names its device; waiting until all devices of StorageNode %s are identified", by)
		}
	}
}

// grantBegun lets those go on that have begun.
func (p *planner) grantBegun() {
	for _, d := range p.daemonsOf(TypeOSD) {
		if p.goes(d) && drains(d) {
			p.granted[placeOf(d)] = true
		}
	}
}

// leaves says whether an OSD is on its way out, or may be.
func (p *planner) leaves(o *osd) bool { return p.hosts[o.host] == nil || p.granted[o.place()] }

// working leaves a host in maintenance as it is.
func (p *planner) working(u *upkeep) bool {
	return !p.closed(u.host) || p.await(u, api.ReasonHostNotActive,
		"no StorageNode names its device; waiting for the end of mode %s of host %s",
		p.hosts[u.host].ModeOf(), u.host)
}

// mayWithdraw refuses, before anything is touched, what could only end in waiting for ever. What an OSD that is on its way may make
// possible is waited for: a disk is often replaced in one change. Those that have begun go on without the others.
func (p *planner) mayWithdraw(u *upkeep) bool {
	fresh, begun := u.fresh()
	if len(fresh.daemons) == 0 {
		return true
	}
	unknown := p.spaceUnknown()
	why := p.noRoom(fresh)
	switch {
	case unknown:
		p.await(fresh, api.ReasonNotAnswering, "Ceph does not say yet how full its OSDs are")
	case !why.None() && slices.ContainsFunc(p.osds, p.coming):
		p.await(fresh, api.ReasonAwaitingReplacement,
			"no StorageNode names its device; waiting for a new OSD: %s", why.Message)
	default:
		for _, d := range fresh.daemons {
			if p.grant(&upkeep{host: u.host, daemons: []*api.Daemon{d}, withdrawn: []string{label(d)}}) {
				begun.daemons, begun.withdrawn = append(begun.daemons, d), append(begun.withdrawn, label(d))
			}
		}
	}
	*u = *begun
	return len(begun.daemons) > 0
}

// grant lets an OSD go, if the others can do without it and all that may go already.
func (p *planner) grant(one *upkeep) bool {
	why := p.noRoom(one)
	if !why.None() {
		p.say(one, why.Verdict, why.Reason,
			"no StorageNode names its device, but the OSD cannot be removed: %s; or add the device back", why.Message)
		return false
	}
	for _, d := range one.daemons {
		p.granted[placeOf(d)] = true
	}
	return true
}

// fresh are those of the OSDs that were not told to leave yet; begun are the others.
func (u *upkeep) fresh() (fresh, begun *upkeep) {
	fresh, begun = &upkeep{host: u.host}, &upkeep{host: u.host, withdrawn: slices.Clone(u.withdrawn)}
	for _, d := range u.daemons {
		if drains(d) {
			begun.daemons = append(begun.daemons, d)
			continue
		}
		fresh.daemons, fresh.withdrawn = append(fresh.daemons, d), append(fresh.withdrawn, label(d))
	}
	begun.withdrawn = slices.DeleteFunc(begun.withdrawn, func(l string) bool { return slices.Contains(fresh.withdrawn, l) })
	return fresh, begun
}

// coming says whether an OSD is to stay, is not up yet and is expected to be.
func (p *planner) coming(o *osd) bool {
	return !p.going.Place(o.place().drive()) && (!p.inMap(o) || !p.seen.OSDs[o.id].Up && p.expected(o))
}

// has says whether an OSD is one of those that leave.
func (u *upkeep) has(o *osd) bool {
	return o.host == u.host && (len(u.withdrawn) == 0 || slices.Contains(u.withdrawn, o.label()))
}

// why is the reason for what is asked of Ceph.
func (p *planner) why(u *upkeep) string {
	switch {
	case u.reason != "":
		return u.reason
	case len(u.withdrawn) > 0:
		return "no StorageNode names its device any more"
	case p.hosts[u.host] == nil:
		return "host " + u.host + " is gone"
	}
	return "host " + u.host + " is drained"
}

// it begins a sentence on the OSDs that leave.
func (u *upkeep) it() string {
	if len(u.withdrawn) > 0 {
		return "it is"
	}
	return "its OSDs are"
}

// kind is where the data goes to others of.
func (u *upkeep) kind() string {
	if len(u.withdrawn) > 0 {
		return "OSDs"
	}
	return "hosts"
}

// others begins a sentence on where the data would go.
func (u *upkeep) others() string {
	if len(u.withdrawn) > 0 {
		return "OSDs: they"
	}
	return "hosts: their OSDs"
}
