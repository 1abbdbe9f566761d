package ceph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// mgrCrew are the managers, of which one is active. Of those that stand by Ceph tells only how many there are.
func (p *planner) mgrCrew() *crew {
	return &crew{
		daemonType: TypeMgr, object: "mgrs", noun: "mgr", field: "spec.ceph.mgr.count", count: int(p.spec.Mgr.Count), least: 1,
		active: func(id string) bool { return p.seen != nil && p.seen.ActiveMgr == id },
		absent: func(running int) int {
			present := p.seen.Standbys
			if p.seen.ActiveMgr != "" {
				present++
			}
			return running - present
		},
	}
}

func (p *planner) planMgrs() {
	places, _ := p.places(p.spec.Mgr.HostSelector, "mgrs")
	p.man(p.mgrs, places)
}

func (p *planner) mgrDaemon(m seat, facts *confFacts) api.Daemon {
	d := p.daemon(TypeMgr, m.id, m.host, m.address, facts)
	d.Spec.Files = append(d.Spec.Files, p.keyringFile(p.mgrs.entityOf(m.id)))
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderMgr, metav1.Duration{Duration: stopTimeoutMgr}
	d.Spec.OnRemoval = api.DeletionWipe // a manager has no data that is worth keeping
	return d
}
