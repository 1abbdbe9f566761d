package ceph

import (
	"cmp"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
)

// withdrawServices has mons, mgrs and daemons of services replaced that are where they may not be any more, where another
// host may have one.
func (p *planner) withdrawServices() {
	if !p.reachable() {
		return
	}
	unmeant := p.unmeant()
	p.withdrawMons(unmeant)
	p.withdrawMgrs(unmeant)
	p.withdrawCrews(unmeant)
}

// withdrawMons has each mon replaced that is not where mons may be, as far as other hosts may have one.
func (p *planner) withdrawMons(unmeant func(string) bool) {
	hosts, elsewhere := selection.Mons(&p.spec), p.monElsewhere()
	if !hosts.Moves(p.view.Hosts) || !hosts.Given() && !elsewhere {
		return
	}
	for _, m := range p.members {
		switch why := p.misplaced(hosts, "mon."+m.ID, m.Host, unmeant); {
		case why == "":
		case elsewhere:
			p.yielded[m.Host] = why
		default:
			p.decide(api.VerdictSkip, api.ReasonNoOtherHost, "mon."+m.ID, "%s; it stays: no other host may run a mon", why)
		}
	}
}

func unmeantReason(host string) string { return "host " + host + " has no StorageNode any more" }

// unmeant tells which hosts are not meant by any StorageNode any more. It goes by the same rule as for OSDs: while a node may still mean
// the host, it is meant. Where the spec selects hosts it does not ask for nodes.
func (p *planner) unmeant() func(host string) bool {
	none := func(string) bool { return false }
	meant := map[string]bool{}
	for _, n := range p.nodes {
		host := cmp.Or(n.hostName(), onlyHost(n.Node, p.hosts))
		if host == "" {
			return none
		}
		meant[host] = true
	}
	maps.Copy(meant, p.going.nobodys)
	return func(host string) bool {
		return p.hosts[host] != nil && p.hosts[host].ModeOf() == api.HostActive && !meant[host]
	}
}

// withdrawMgrs lets each mgr go that has a place elsewhere, once another one stands by.
func (p *planner) withdrawMgrs(unmeant func(string) bool) {
	hosts := selection.Mgrs(&p.spec)
	if !hosts.Moves(p.view.Hosts) {
		return
	}
	var all, leave []*api.Daemon
	reasons := map[string]string{}
	for _, d := range p.daemonsOf(TypeMgr) {
		if d.DeletionTimestamp != nil {
			continue
		}
		all = append(all, d)
		if why := p.misplaced(hosts, label(d), d.Spec.Host, unmeant); why != "" {
			reasons[d.Name], leave = why, append(leave, d)
		}
	}
	if len(leave) == 0 {
		return
	}
	room := len(all) - int(p.spec.Mgr.Count) + len(p.placesForMgrs())
	for _, d := range leave[:min(max(room, 0), len(leave))] {
		p.astray[d.Name] = reasons[d.Name]
	}
	for _, d := range leave {
		if why := p.astray[d.Name]; why != "" {
			p.moveMgr(&upkeep{host: d.Spec.Host, daemons: []*api.Daemon{d}, withdrawn: []string{label(d)}, reason: why})
			continue
		}
		p.decide(api.VerdictSkip, api.ReasonNoOtherHost, label(d), "%s; it stays: no other host may run a mgr",
			reasons[d.Name])
	}
}

// placesForMgrs are the hosts that may have another mgr.
func (p *planner) placesForMgrs() []place {
	places, _ := p.places(selection.Mgrs(&p.spec), "mgrs")
	return slices.DeleteFunc(places, func(at place) bool {
		return slices.ContainsFunc(p.daemonsOf(TypeMgr), func(d *api.Daemon) bool { return d.Spec.Host == at.host })
	})
}
