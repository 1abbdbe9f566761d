package ceph

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// watched says whether a cluster was adopted and is not in Holdfast's hands yet: some of its daemons are only watched, are just being handed over,
// or have no Daemon. It is never founded anew.
func watched(view *engine.View) bool {
	if view.Cluster.Annotations[AnnotationAdopted] != "" && len(view.Daemons) == 0 {
		return true
	}
	return handingOver(view) != nil || slices.ContainsFunc(view.Daemons, isWatched)
}

func isWatched(d api.Daemon) bool { return d.Spec.State == api.WantWatched }

// handingOver is the Action that hands daemons over, or nil.
func handingOver(view *engine.View) *api.Action {
	i := slices.IndexFunc(view.Actions, func(a api.Action) bool {
		return a.Spec.Kind == HandOverKind && a.Spec.Cluster == view.Cluster.Name && a.Status.State == api.ActionRunning
	})
	if i < 0 {
		return nil
	}
	return &view.Actions[i]
}

// planWatched is the plan while daemons are only watched: it tells how they are, and changes nothing of them or of Ceph.
func (p *planner) planWatched() {
	p.identity()
	if p.refused() {
		p.onlyRefuse()
		return
	}
	p.resolve()
	p.declareServices()
	p.members = monset.Of(p.view.Daemons)
	p.keepOSDs()
	p.comparePlaces()
	for _, d := range p.membersOf(p.mgrs) {
		p.mgrs.seats = append(p.mgrs.seats, seat{d.Spec.ID, d.Spec.Host, d.Spec.Parameters[ParamAddress]})
	}
	var names []string
	for i := range p.view.Daemons {
		if d := &p.view.Daemons[i]; isWatched(*d) {
			names = append(names, label(d))
		}
	}
	object := "cluster/" + p.cluster.Name
	switch a := handingOver(p.view); {
	case a != nil:
		p.decide(api.VerdictSkip, api.ReasonActionActs, object,
			"action/%s hands its daemons over; the plan leaves them alone until it ends", a.Name)
	case len(names) == 0:
		p.decide(api.VerdictWait, api.ReasonDependencyNotReady, object,
			"it was adopted and has no Daemons: run 'holdfast ceph adopt' again, or delete the StorageCluster")
	default:
		p.decide(api.VerdictSkip, api.ReasonObserveOnly, object,
			"its daemons are watched and not changed until 'holdfast ceph adopt %s --hand-over': %s",
			p.cluster.Name, words.Few(names))
	}
	p.refuseModes()
	for _, n := range p.nodes {
		if n.group == nil {
			p.plan.PutNode(n.ResolvedNode, n.problems, p.now)
		}
	}
	p.writeStatus()
}

// refuseModes refuses what is to be done with hosts: nobody would stop or move their daemons, and a machine that is switched off on the word of such
// an action would take them with it.
func (p *planner) refuseModes() {
	told := map[string]bool{}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if h := p.hosts[d.Spec.Host]; h != nil && h.ModeOf() != api.HostActive && !told[h.Name] {
			told[h.Name] = true
			p.decide(api.VerdictRefuse, api.ReasonObserveOnly, engine.HostObject(h.Name),
				"cannot stop or move its daemons: the cluster is not handed over; run 'holdfast ceph adopt %s --hand-over', or "+
					"use your former procedure", p.cluster.Name)
		}
	}
}
