package ceph

import (
	"cmp"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
)

// withdrawServices has mons and mgrs replaced whose host no StorageNode means any more, where another host may have one.
func (p *planner) withdrawServices() {
	if !p.reachable() {
		return
	}
	unmeant := p.unmeant()
	if p.spec.Mon.HostSelector == nil && p.monElsewhere() {
		for _, m := range p.members {
			switch {
			case !unmeant(m.Host):
			case p.grace(m.Host) > 0:
				p.awaitNode("mon."+m.ID, m.Host)
			default:
				p.yielded[m.Host] = unmeantReason(m.Host)
			}
		}
	}
	if p.spec.Mgr.HostSelector == nil {
		p.withdrawMgrs(unmeant)
	}
	p.withdrawCrews(unmeant)
}

func unmeantReason(host string) string { return "host " + host + " has no StorageNode any more" }

// unmeant tells which hosts are not meant by any StorageNode any more. It goes by the same rule as for OSDs: while a node may still mean
// the host, it is meant. A selector for mons or mgrs does not ask for nodes.
func (p *planner) unmeant() func(host string) bool {
	none := func(string) bool { return false }
	meant := map[string]bool{}
	for _, n := range p.nodes {
		host := cmp.Or(n.hostName(), leaving.OnlyHost(n.Node, p.hosts))
		if host == "" {
			return none
		}
		meant[host] = true
	}
	maps.Copy(meant, p.going.Nobodys())
	return func(host string) bool {
		return p.hosts[host] != nil && p.hosts[host].ModeOf() == api.HostActive && !meant[host]
	}
}

// withdrawMgrs lets each mgr go that has a place elsewhere, once another one stands by.
func (p *planner) withdrawMgrs(unmeant func(string) bool) {
	var all, leave []*api.Daemon
	for _, d := range p.daemonsOf(TypeMgr) {
		switch {
		case d.DeletionTimestamp != nil:
		case unmeant(d.Spec.Host) && p.grace(d.Spec.Host) > 0:
			p.awaitNode(label(d), d.Spec.Host)
			all = append(all, d)
		case unmeant(d.Spec.Host):
			leave = append(leave, d)
			fallthrough
		default:
			all = append(all, d)
		}
	}
	if len(leave) == 0 {
		return
	}
	room := len(all) - int(p.spec.Mgr.Count) + len(p.placesForMgrs())
	for _, d := range leave[:min(max(room, 0), len(leave))] {
		p.astray[d.Name] = unmeantReason(d.Spec.Host)
	}
	for _, d := range leave {
		if why := p.astray[d.Name]; why != "" {
			p.moveMgr(&upkeep{host: d.Spec.Host, daemons: []*api.Daemon{d}, withdrawn: []string{label(d)}, reason: why})
			continue
		}
		p.decide(api.VerdictSkip, api.ReasonNoOtherHost, label(d), "%s; it stays: no other host may run a mgr",
			unmeantReason(d.Spec.Host))
	}
}

// placesForMgrs are the hosts that may have another mgr.
func (p *planner) placesForMgrs() []place {
	places, _ := p.places(nil, "mgrs")
	return slices.DeleteFunc(places, func(at place) bool {
		return slices.ContainsFunc(p.daemonsOf(TypeMgr), func(d *api.Daemon) bool { return d.Spec.Host == at.host })
	})
}
