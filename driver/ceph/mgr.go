package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// mgr is a wanted manager.
type mgr struct {
	id, host, address string
}

// planMgrs keeps the managers that there are, adds some where there are too few, and removes some where there are too many.
func (p *planner) planMgrs() {
	count := int(p.spec.Mgr.Count)
	for _, d := range p.daemonsOf(TypeMgr) {
		p.mgrs = append(p.mgrs, mgr{d.Spec.ID, d.Spec.Host, d.Spec.Parameters[ParamAddress]})
	}
	for len(p.mgrs) > count && !slices.ContainsFunc(p.mgrs, p.inMaintenance) {
		p.dropMgr()
	}
	// Those that stop with their hosts cannot take over; one elsewhere has to.
	count = max(count, p.mgrsAway()+1)
	places, _ := p.places(p.spec.Mgr.HostSelector, "mgrs")
	for _, at := range p.byLoad(places) {
		if len(p.mgrs) >= count {
			break
		}
		p.mgrs = append(p.mgrs, mgr{p.freeMgrID(), at.host, at.address})
	}
	if n := len(p.mgrs); n < int(p.spec.Mgr.Count) && len(p.members) > 0 {
		p.decide(api.VerdictSkip, "mgrs", "the cluster has %s although spec.ceph.mgr.count is %d: each has a host of its own, "+
			"and no more hosts can be used", plural(n, "mgr"), p.spec.Mgr.Count)
	}
	slices.SortFunc(p.mgrs, func(a, b mgr) int { return strings.Compare(a.id, b.id) })
}

func (p *planner) inMaintenance(m mgr) bool { return p.mode(m.host) == api.HostMaintenance }

// mgrsAway counts the managers that stopped with their hosts, or are about to.
func (p *planner) mgrsAway() (n int) {
	for _, m := range p.mgrs {
		d := p.have[daemonName(p.cluster.Name, "mgr", m.id)]
		if p.inMaintenance(m) && (p.leaving[m.host] || d != nil && told(d)) {
			n++
		}
	}
	return n
}

// dropMgr removes the manager that was added last, rather a standby than the active one.
func (p *planner) dropMgr() {
	last := len(p.mgrs) - 1
	if p.seen != nil && p.mgrs[last].id == p.seen.ActiveMgr && last > 0 {
		last--
	}
	m := p.mgrs[last]
	p.mgrs = slices.Delete(p.mgrs, last, last+1)
	name := daemonName(p.cluster.Name, "mgr", m.id)
	if p.have[name].DeletionTimestamp == nil {
		reason := fmt.Sprintf("spec.ceph.mgr.count is %d", p.spec.Mgr.Count)
		p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: name, Reason: reason})
		p.decide(api.VerdictDo, "mgr."+m.id, "removed from host %s: %s", m.host, reason)
	}
}

// byLoad are the places that have no manager, those without a mon first.
func (p *planner) byLoad(places []place) []place {
	load := map[string]int{}
	for _, m := range p.members {
		load[m.Host]++
	}
	free := slices.DeleteFunc(slices.Clone(places), func(at place) bool {
		return slices.ContainsFunc(p.mgrs, func(m mgr) bool { return m.host == at.host })
	})
	slices.SortStableFunc(free, func(a, b place) int { return cmp.Compare(load[a.host], load[b.host]) })
	return free
}

// freeMgrID is the first letter that no manager has, one that is being removed included.
func (p *planner) freeMgrID() string {
	for i := 0; ; i++ {
		id := letters(i)
		taken := p.have[daemonName(p.cluster.Name, "mgr", id)] != nil ||
			slices.ContainsFunc(p.mgrs, func(m mgr) bool { return m.id == id })
		if !taken {
			return id
		}
	}
}

// daemonsOf returns the Daemons of a type, by name.
func (p *planner) daemonsOf(daemonType string) []*api.Daemon {
	var daemons []*api.Daemon
	for i := range p.view.Daemons {
		if d := &p.view.Daemons[i]; d.Spec.Type == daemonType {
			daemons = append(daemons, d)
		}
	}
	return daemons
}

func (p *planner) mgrDaemon(m mgr, facts *confFacts) api.Daemon {
	d := p.daemon(TypeMgr, m.id, m.host, m.address, facts)
	d.Spec.Files = append(d.Spec.Files, p.keyringFile("mgr."+m.id))
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderMgr, metav1.Duration{Duration: stopTimeoutMgr}
	d.Spec.OnRemoval = api.DeletionWipe // a manager has no data that is worth keeping
	return d
}
