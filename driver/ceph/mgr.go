package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// mgr is a wanted manager.
type mgr struct {
	id, host, address string
}

// planMgrs keeps the managers that there are, adds some where there are too few, and removes some where there are too many.
func (p *planner) planMgrs() {
	count := int(p.spec.Mgr.Count)
	moved := 0
	for _, d := range p.daemonsOf(TypeMgr) {
		drained, why := p.hosts[d.Spec.Host].ModeOf() == api.HostDrain, cmp.Or(p.abandoned[d.Spec.Host], "the host is drained")
		switch goes := drained || p.abandoned[d.Spec.Host] != ""; {
		case goes && d.DeletionTimestamp != nil:
			continue
		case goes && p.leaving[d.Spec.Host]:
			p.removeMgr(d.Spec.ID, d.Spec.Host, why)
			continue
		case goes && !p.refusedHost(d.Spec.Host):
			moved++
		}
		p.mgrs = append(p.mgrs, mgr{d.Spec.ID, d.Spec.Host, d.Spec.Parameters[ParamAddress]})
	}
	// One that moves, or that is lost with its host, gets another in its place before it goes.
	count += moved + p.mgrsLost()
	for len(p.mgrs) > count && !slices.ContainsFunc(p.mgrs, p.inMaintenance) && !p.mgrUnsteady() {
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
			"and no more hosts can be used", words.Plural(n, "mgr"), p.spec.Mgr.Count)
	}
	slices.SortFunc(p.mgrs, func(a, b mgr) int { return strings.Compare(a.id, b.id) })
}

func (p *planner) inMaintenance(m mgr) bool { return p.hosts[m.host].ModeOf() == api.HostMaintenance }

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
	if p.have[daemonName(p.cluster.Name, "mgr", m.id)].DeletionTimestamp == nil {
		p.removeMgr(m.id, m.host, fmt.Sprintf("spec.ceph.mgr.count is %d", p.spec.Mgr.Count))
	}
}

func (p *planner) removeMgr(id, host, reason string) {
	p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: daemonName(p.cluster.Name, "mgr", id), Reason: reason})
	p.decide(api.VerdictDo, "mgr."+id, "removed from host %s: %s", host, reason)
}

// forgetMgrs takes the keys of managers that are gone for good from Ceph's auth database: those that were made by Holdfast.
func (p *planner) forgetMgrs() {
	for _, s := range p.view.Secrets {
		entity := s.Annotations[AnnotationEntity]
		id, isMgr := strings.CutPrefix(entity, "mgr.")
		wanted := slices.ContainsFunc(p.mgrs, func(m mgr) bool { return m.id == id })
		if isMgr && p.seen.Entities[entity] && !wanted && p.have[daemonName(p.cluster.Name, "mgr", id)] == nil {
			p.command(verbAuthRm, entity, nil, "the mgr is gone")
		}
	}
}

// mgrLostAfter is how long the agent of a host is silent before its mgr gets another in its place, if Ceph misses it too. A mgr
// has no state, so that one too many does no harm.
const mgrLostAfter = time.Minute

// mgrsLost counts the managers that are missing in Ceph, on hosts that are silent or gone. Their Daemons stay: nothing is
// stopped because of lost contact, and when the host is heard again the one too many goes.
func (p *planner) mgrsLost() int {
	if !p.reachable() {
		return 0
	}
	missing := -p.seen.Standbys
	if p.seen.ActiveMgr != "" {
		missing--
	}
	var silent []*api.Daemon
	for _, d := range p.daemonsOf(TypeMgr) {
		if d.DeletionTimestamp != nil || told(d) {
			continue
		}
		missing++
		if h := p.hosts[d.Spec.Host]; d.Spec.ID != p.seen.ActiveMgr && (h == nil || !h.AgentHeard()) {
			silent = append(silent, d)
		}
	}
	lost := 0
	for _, d := range silent {
		switch h := p.hosts[d.Spec.Host]; {
		case lost >= missing:
		case h == nil || p.silentFor(h) >= mgrLostAfter:
			lost++
		default:
			p.decide(api.VerdictWait, label(d), "not replaced yet: it is missing and the agent of host %s is silent, for less than %v", d.Spec.Host, mgrLostAfter)
		}
	}
	return lost
}

// mgrSteadyAfter is how long a host that was silent is heard before the mgr that took its mgr's place goes. Of a host that comes
// and goes the mgr would move back and forth.
const mgrSteadyAfter = 5 * time.Minute

// mgrUnsteady says whether the host of a mgr is silent, or was a short while ago.
func (p *planner) mgrUnsteady() bool {
	for _, m := range p.mgrs {
		h := p.hosts[m.host]
		if h == nil {
			continue
		}
		c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
		if !h.AgentHeard() || c != nil && c.Reason == api.HostAgentReturned && p.now.Sub(c.LastTransitionTime.Time) < mgrSteadyAfter {
			p.decide(api.VerdictSkip, "mgrs", "there are more than spec.ceph.mgr.count: they stay until host %s, which was silent, has been heard for %v",
				m.host, mgrSteadyAfter)
			return true
		}
	}
	return false
}

// byLoad are the places that have no manager, those without a mon first.
func (p *planner) byLoad(places []place) []place {
	load := map[string]int{}
	for _, m := range slices.Concat(p.members, p.joining) {
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
