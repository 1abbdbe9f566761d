package ceph

import (
	"cmp"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
)

// withdrawServices has mons, mgrs and daemons of services replaced that are where they may not be any more,
// where another host may have one.
func (p *planner) withdrawServices() {
	if !p.reachable() {
		return
	}
	unmeant := p.unmeant()
	p.withdrawMons(unmeant)
	p.withdrawMgrs(unmeant)
	p.withdrawCrews(unmeant)
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if o := asked.Stays(d, movableTypes); !o.None() {
			p.object(label(d), o)
		}
	}
}

// movableTypes are the types of daemons that others can replace elsewhere.
var movableTypes = append([]string{TypeMon, TypeMgr}, servingTypes...)

// withdrawMons has each mon replaced that is not where mons may be, or that a person asked to leave, as far as
// other hosts may have one.
func (p *planner) withdrawMons(unmeant func(string) bool) {
	hosts, elsewhere := selection.Mons(&p.spec), p.monElsewhere()
	for _, m := range p.members {
		why := asked.Leave(p.have[daemonName(p.cluster.Name, "mon", m.ID)], p.hosts[m.Host])
		told := why != "" || hosts.Given()
		if hosts.Moves(p.view.Hosts) && (elsewhere || hosts.Given()) {
			why = cmp.Or(p.misplaced(hosts, "mon."+m.ID, m.Host, unmeant), why)
		}
		switch {
		case why == "":
		case elsewhere:
			p.yielded[m.Host] = why
		case told:
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

// withdrawMgrs lets each mgr go that has a place elsewhere, once another one stands by. One that a person asked
// to leave also goes where it is one of several.
func (p *planner) withdrawMgrs(unmeant func(string) bool) {
	hosts := selection.Mgrs(&p.spec)
	var all, leave []*api.Daemon
	reasons, room := map[string]string{}, 0
	for _, d := range p.daemonsOf(TypeMgr) {
		why := asked.Leave(d, p.hosts[d.Spec.Host])
		if why != "" && d.DeletionTimestamp == nil {
			room = min(1, len(p.daemonsOf(TypeMgr))-1)
		}
		if hosts.Moves(p.view.Hosts) {
			why = cmp.Or(p.misplaced(hosts, label(d), d.Spec.Host, unmeant), why)
		}
		switch {
		case d.DeletionTimestamp != nil:
			p.astray[d.Name] = why
			continue
		case why != "":
			reasons[d.Name], leave = why, append(leave, d)
		}
		all = append(all, d)
	}
	if len(leave) == 0 {
		return
	}
	room = max(room, len(all)-int(p.spec.Mgr.Count)+len(p.placesForMgrs()))
	for _, d := range leave[:min(room, len(leave))] {
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
