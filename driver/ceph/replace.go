package ceph

import (
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// replacedBy returns the OSD whose number the one on a fresh device is to have, or nil: another disk of the host was taken from the cluster,
// and failed. Ceph then moves data to the new disk alone, where with another number it would move among all (Ceph docs, "Replacing an OSD").
func (p *planner) replacedBy(at devicePlace) *api.Daemon {
	for _, d := range p.daemonsOf(TypeOSD) {
		if _, paired := p.replaced[d.Name]; !paired && d.Spec.Host == at.host && p.replaceable(d) {
			p.replaced[d.Name] = at.device
			return d
		}
	}
	return nil
}

// replaceable says whether an OSD that was taken from the cluster has failed, so that nothing can be drained from it. Where data is out of
// reach without it, it is not destroyed: it may have the only copy.
func (p *planner) replaceable(d *api.Daemon) bool {
	at := placeOf(d)
	marked := d.Spec.Parameters[ParamDrain] == drainReplace
	switch {
	case p.going.host(at.host) || !p.going.withdrawn(at):
		return false
	case d.DeletionTimestamp != nil || !p.reachable() || p.destroyed(d):
		return marked
	case p.seen.hasCheck(checkAvailability), drains(d) && !marked:
		return false
	}
	return marked || p.inCeph(d) && (p.pulled(at) || !p.seenOSD(d).Up && failing(d))
}

// checkAvailability is Ceph's health check for placement groups that have been out of reach for a while.
const checkAvailability = "PG_AVAILABILITY"

func failing(d *api.Daemon) bool {
	return d.Status.State == api.DaemonBackOff || d.Status.State == api.DaemonFailed
}

// pulled says whether a host that tells its devices does not have one.
func (p *planner) pulled(at devicePlace) bool {
	h := p.hosts[at.host]
	return h.AgentHeard() && h.Status.BootID != "" && !slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == at.device })
}

// destroyed says whether Ceph keeps nothing of an OSD but its number.
func (p *planner) destroyed(d *api.Daemon) bool {
	id, err := strconv.Atoi(d.Spec.ID)
	_, is := p.seen.Destroyed[id]
	return err == nil && is
}

// planReplacements takes leave of OSDs that failed and whose number another one on the same host is to have.
func (p *planner) planReplacements() {
	for _, name := range slices.Sorted(maps.Keys(p.replaced)) {
		d := p.have[name]
		u := &upkeep{host: d.Spec.Host, withdrawn: []string{label(d)}, reason: "device " + p.replaced[name] + " takes its place"}
		if d.DeletionTimestamp == nil {
			u.daemons = []*api.Daemon{d}
		}
		p.parting[name], p.granted[placeOf(d)] = true, true
		for _, step := range []func(*upkeep) bool{p.working, p.answers, p.stopReplaced, p.destroy, p.dismiss} {
			if !step(u) {
				break
			}
		}
	}
}

// stopReplaced notes that the OSD is replaced, and waits until it has stopped.
func (p *planner) stopReplaced(u *upkeep) bool {
	p.stopAll(u.daemons)
	noted := allOf(u.daemons, func(d *api.Daemon) bool { return d.Spec.Parameters[ParamDrain] == drainReplace })
	up := slices.ContainsFunc(u.daemons, func(d *api.Daemon) bool { return p.inCeph(d) && p.seenOSD(d).Up })
	return noted && allOf(u.daemons, ended) && !up || p.await(u, "waiting for it to stop, and for Ceph to see that: %s", u.reason)
}

// destroy has Ceph forget an OSD but for its number and its place, once all data is in use without it.
func (p *planner) destroy(u *upkeep) bool {
	for _, d := range u.daemons {
		switch o := p.seen; {
		case !p.inCeph(d):
		case o.PGsOld || o.PGs < o.PGsWanted || o.PGsActive < o.PGs:
			return p.await(u, "%s, when all placement groups are seen to be active without it", u.reason)
		default:
			p.command(verbOSDDestroy, label(d), nil, "it failed, and "+u.reason)
			return p.await(u, "Ceph is to forget it but for its number")
		}
	}
	return true
}
