package ceph

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
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
	places, _ := p.places(selection.Mgrs(&p.spec), "mgrs")
	p.man(p.mgrs, places)
	planOrch(p)
}

// orchFacts are what Ceph says of 'ceph orch'; nil where it was not asked, or did not answer.
func orchFacts(p *planner) *orch.Facts {
	if !p.reachable() {
		return nil
	}
	return p.seen.Orch
}

// planOrch has Ceph call Holdfast for 'ceph orch', or no more.
func planOrch(p *planner) {
	facts := orchFacts(p)
	if facts == nil {
		return
	}
	switch next := orch.Next(&p.spec, facts, p.daemonsOf(TypeMgr), p.seen.MgrAvailable); {
	case next == nil:
	case next.Verb != "":
		p.command(next.Reason, next.Verb, orch.Object, next.Params, next.Why)
	default:
		p.decide(api.VerdictWait, next.Reason, orch.Object, "%s", next.Why)
	}
}

// fillOrch asks who answers 'ceph orch' where that matters, and for the map of the managers when it has changed.
func fillOrch(ctx context.Context, c *conn, view *engine.View, o *Observation) (err error) {
	had := func(d api.Daemon) bool { return d.Spec.Parameters[api.ParameterOrch] != "" }
	if !orch.Wanted(view.Cluster.Spec.Ceph) && !slices.ContainsFunc(view.Daemons, had) {
		return nil
	}
	if c.mgrs == nil || c.mgrs.Epoch != c.mgrEpoch {
		mgrs := &orch.MgrMap{}
		if err := c.ask(ctx, "mgr dump", mgrs); err != nil {
			return err
		}
		c.mgrs = mgrs
	}
	var stored map[string]string
	if o.Config != nil {
		stored = o.Config.Stored
	}
	if stored == nil {
		stored, err = c.readStored(ctx)
	}
	o.Orch, o.Mgrs = c.mgrs.Facts(stored), c.mgrs.Names()
	return err
}

func performOrch(c *conn, ctx context.Context, r request) error { //nolint:revive // as methods of conn
	return c.plain(ctx, r, orch.Command(r.Verb, r.Params))
}

func orchDone(f *foresight, r request) { f.Orch = f.Orch.After(r.Verb, r.Params) }

// foreseeOrch has managers that will run have loaded the module, if they are started with it. A cluster that is made with it has
// it enabled.
func foreseeOrch(f *foresight) {
	if f.Orch == nil && !orch.Wanted(f.after.Cluster.Spec.Ceph) {
		return
	}
	now, was := orch.Facts{Enabled: !f.seen.Reachable, Loaded: map[string]bool{}}, f.Orch
	if was != nil {
		now.Backend, now.Enabled = was.Backend, was.Enabled
	}
	for _, d := range f.daemonsOf(TypeMgr) {
		loads := was != nil && was.Loaded[d.Spec.ID] || f.startsAnew(d) && d.Spec.Parameters[api.ParameterOrch] != ""
		now.Loaded[d.Spec.ID] = loads && f.runs(d, f.had(d))
	}
	f.Orch = &now
}

func (p *planner) mgrDaemon(m seat, facts *confFacts) api.Daemon {
	d := p.daemon(TypeMgr, m.id, m.host, m.address, facts)
	d.Spec.Files = append(d.Spec.Files, p.keyringFile(p.mgrs.entityOf(m.id)))
	if facts.orch {
		d.Spec.Parameters[api.ParameterOrch] = orch.Parameter(p.have[d.Name])
	}
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderMgr, metav1.Duration{Duration: stopTimeoutMgr}
	d.Spec.OnRemoval = api.DeletionWipe // a manager has no data that is worth keeping
	return d
}
