package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
)

// replacedBy returns the OSD whose number the one on a fresh device is to have, or nil: another
// disk of the host was taken from the cluster, and failed. Ceph then moves data to the new disk
// alone, where with another number it would move among all (Ceph docs, "Replacing an OSD"). A disk
// with an OSD of its own, which returns, replaces none.
func (p *planner) replacedBy(at devicePlace, returns bool) *api.Daemon {
	if returns {
		return nil
	}
	for _, d := range p.daemonsOf(TypeOSD) {
		if _, paired := p.replaced[d.Name]; !paired && d.Spec.Host == at.host && p.replaceable(d) {
			p.replaced[d.Name] = at.device
			return d
		}
	}
	for _, d := range p.daemonsOf(TypeOSD) {
		if p.awaited[d.Name] == "" && d.Spec.Host == at.host && makesRoom(p, d) {
			p.awaited[d.Name] = at.device
			return d
		}
	}
	return nil
}

// keepsNumber says whether spec.replace names the device of an OSD, so that Ceph keeps the number
// of the OSD for the next disk.
func keepsNumber(p *planner, d *api.Daemon) bool {
	return d.Spec.Type == TypeOSD && p.moved[d.Name] == nil && !p.going.Host(d.Spec.Host) &&
		p.going.Unnamed(placeOf(d).drive()) && p.going.Replaced(d, memory.Of(d, memory.Replaced) != "")
}

// makesRoom says whether another disk waits for the number of an OSD: the OSD leaves, or may. Where
// the others cannot do without it, the disk gets a number of its own.
func makesRoom(p *planner, d *api.Daemon) bool {
	if !p.going.Withdrawn(placeOf(d).drive()) || !keepsNumber(p, d) {
		return false
	}
	one := &upkeep{host: d.Spec.Host, daemons: []*api.Daemon{d}, withdrawn: []string{label(d)}}
	return drains(d) || d.DeletionTimestamp != nil || p.seen.Drain == nil || p.spaceUnknown() || p.noRoom(one).None()
}

// replaceable says whether an OSD that was taken from the cluster has failed, so that nothing can
// be drained from it. Where data is out of reach without it, it is not destroyed: it may have the
// only copy.
func (p *planner) replaceable(d *api.Daemon) bool {
	at := placeOf(d)
	marked := d.Spec.Parameters[ParamDrain] == memory.Replace
	switch {
	case p.going.Host(at.host) || !p.going.Withdrawn(at.drive()) || p.moved[d.Name] != nil:
		return false
	case d.DeletionTimestamp != nil || !p.reachable() || p.destroyed(d):
		return marked
	case p.seen.hasCheck(checkAvailability), drains(d) && !marked:
		return false
	}
	return marked || p.broken(d)
}

// checkAvailability is Ceph's health check for placement groups that have been out of reach for a while.
const checkAvailability = "PG_AVAILABILITY"

func failing(d *api.Daemon) bool {
	return d.Status.State == api.DaemonBackOff || d.Status.State == api.DaemonFailed
}

// broken says whether an OSD that Ceph has does not work: its disk is gone, or it does not start, or is held back.
func (p *planner) broken(d *api.Daemon) bool {
	return p.inCeph(d) && (p.pulled(d) || !p.seenOSD(d).Up && (failing(d) || held(d)))
}

// pulled says whether a host that tells its devices does not have that of an OSD, neither by its
// identity nor by what its label says: an identity may change, as when udev tells of one.
func (p *planner) pulled(d *api.Daemon) bool {
	h := p.hosts[d.Spec.Host]
	if h == nil || !h.AgentHeard() || h.Status.BootID == "" {
		return false
	}
	at, uuid := placeOf(d), strings.ToLower(d.Spec.Parameters[ParamOSDUUID])
	return !slices.ContainsFunc(h.Status.Devices, func(x api.Device) bool {
		return x.ID == at.device || uuid != "" && p.labelled(&x) == uuid
	})
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
		u := &upkeep{host: d.Spec.Host, withdrawn: []string{label(d)}, reason: "device " + p.replaced[name] + " replaces it"}
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
	noted := allOf(u.daemons, func(d *api.Daemon) bool { return d.Spec.Parameters[ParamDrain] == memory.Replace })
	up := slices.ContainsFunc(u.daemons, func(d *api.Daemon) bool { return p.inCeph(d) && p.seenOSD(d).Up })
	return noted && allOf(u.daemons, ended) && !up || p.await(u, api.ReasonStopping,
		"waiting until it has stopped and Ceph reports it down: %s", u.reason)
}

// destroy has Ceph forget an OSD but for its number and its place, once all data is in use without it.
func (p *planner) destroy(u *upkeep) bool {
	for _, d := range u.daemons {
		switch o := p.seen; {
		case !p.inCeph(d):
		case o.PGsOld || o.PGs < o.PGsWanted || o.PGsActive < o.PGs:
			return p.await(u, api.ReasonDataNotClean, "%s, when all placement groups are active without it", u.reason)
		default:
			p.command(api.ReasonRemoving, verbOSDDestroy, label(d), nil, "it failed, and "+u.reason)
			return p.await(u, api.ReasonConfiguring, "destroying it in Ceph, keeping its number")
		}
	}
	return true
}

// orphans are the numbers that Ceph keeps for another OSD, that Holdfast has given once, as their
// keys tell, and that no Daemon has any more: a leader that replaced a disk died in between, or
// people thought better of it.
func orphans(view *engine.View, o *Observation) []int {
	if len(o.Destroyed) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, s := range view.Secrets {
		known[s.Annotations[AnnotationEntity]] = true
	}
	for i := range view.Daemons {
		delete(known, label(&view.Daemons[i]))
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.Destroyed)), func(id int) bool { return !known[osdName(id)] })
}

// osdName is how Ceph calls an OSD.
func osdName(id int) string { return "osd." + strconv.Itoa(id) }

// forgetNumbers has Ceph forget such a number when no OSD on its host is to have it: first its
// weight goes, so that its data gets to others, and it goes when all have their copies.
func (p *planner) forgetNumbers() {
	if !p.reachable() || p.seen.Drain == nil {
		return
	}
	for _, id := range orphans(p.view, p.seen) {
		if slices.ContainsFunc(p.osds, func(o *osd) bool { return o.id == id }) || p.comes(p.seen.Destroyed[id]) {
			continue
		}
		const why = "destroyed for a replacement, but no replacement disk is named"
		p.moving = true
		switch o := p.seen; {
		case o.Drain.Places[id].Weight > 0:
			p.command(api.ReasonRemoving, verbReweight, osdName(id), map[string]string{osdName(id): weightText(0)}, why)
		case o.PGsOld || o.PGs < o.PGsWanted || o.PGsClean < o.PGs:
			p.decide(api.VerdictWait, api.ReasonDataNotClean, osdName(id),
				"%s: its number is removed when all placement groups are active+clean", why)
		default:
			p.command(api.ReasonRemoving, verbOSDPurge, osdName(id), nil, why)
		}
	}
}

// comes says whether an OSD may still be made on a host, by CRUSH's name.
func (p *planner) comes(bucket string) bool {
	for name := range p.hosts {
		if p.crushOwns(name, bucket) && !p.going.Host(name) &&
			(p.going.Awaited(name) || p.closed(name) || p.going.HeldUpBy(name) != "") {
			return true
		}
	}
	return slices.ContainsFunc(p.nodes, func(n *node) bool {
		host := n.hostName()
		return p.crushOwns(host, bucket) && !p.going.Host(host) && (!n.usable() || n.toCome > 0 ||
			slices.ContainsFunc(n.Devices, func(r engine.ResolvedDevice) bool { return p.taken[devicePlace{host, r.ID}] == nil }))
	})
}
