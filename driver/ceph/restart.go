package ceph

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// planRestarts starts daemons again that need it for what spec.ceph.config asks for now, one after the other: the next when Ceph has the one
// before back.
func (p *planner) planRestarts() {
	if !p.reachable() || p.seen.Config == nil || !p.configStored {
		return
	}
	if all := p.toRestart(); len(all) > 0 {
		p.restart(all[0])
	}
}

// toRestart are the daemons that were started with other options than they should have, those that are on their way first, then mons, managers,
// OSDs, and the rest. Those of hosts that are closed get theirs when they start again there, or elsewhere. An NFS server is a client of Ceph, and
// starts with none of them.
func (p *planner) toRestart() []*api.Daemon {
	var all []*api.Daemon
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.Spec.Type != ganesha.Type && d.DeletionTimestamp == nil && d.Spec.State != api.WantPrepared && !ended(d) && !p.closed(d.Spec.Host) && !drains(d) &&
			len(p.startedWithout(d)) > 0 {
			all = append(all, d)
		}
	}
	return restartOrder(all)
}

// coreTypes are the types of daemons without which Ceph is not whole, in the order in which they are started again. One of another type that does
// not run keeps only its own kind waiting.
var coreTypes = []string{TypeMon, TypeMgr, TypeOSD}

func restartOrder(daemons []*api.Daemon) []*api.Daemon {
	rank := func(d *api.Daemon) int {
		if told(d) {
			return -1
		}
		if i := slices.Index(coreTypes, d.Spec.Type); i >= 0 {
			return i
		}
		return len(coreTypes)
	}
	slices.SortStableFunc(daemons, func(a, b *api.Daemon) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.Spec.ID), len(b.Spec.ID)), strings.Compare(a.Spec.ID, b.Spec.ID))
	})
	return daemons
}

// restart stops a daemon if all others can do without it; it starts again by itself when it has stopped.
func (p *planner) restart(d *api.Daemon) {
	why := "it is started again, because " + words.Few(p.startedWithout(d)) + " in spec.ceph count from its start"
	what := p.unready(d)
	switch {
	case told(d):
		p.stop[d.Name], what = true, "it is stopping"
	case what != "":
	case d.Spec.Type == TypeMgr && d.Spec.ID == p.seen.ActiveMgr && p.seen.Standbys > 0:
		p.command(verbMgrFail, label(d), nil, why)
		what = "another mgr takes over first"
	default:
		p.stop[d.Name], what = true, "it is stopping"
	}
	p.moving = true
	p.decide(api.VerdictWait, label(d), "%s; %s", why, what)
}

// unready says what has to be there before a daemon may stop for a moment; empty when all is.
func (p *planner) unready(d *api.Daemon) string {
	for i := range p.view.Daemons {
		x := &p.view.Daemons[i]
		matters := x.Spec.Type == d.Spec.Type || slices.Contains(coreTypes, x.Spec.Type)
		if matters && x.Name != d.Name && x.DeletionTimestamp == nil && x.Spec.State != api.WantPrepared && !p.closed(x.Spec.Host) && (told(x) || x.Status.State != api.DaemonRunning) {
			return label(x) + " comes first: it does not run"
		}
	}
	if !p.hosts[d.Spec.Host].AgentHeard() {
		return "the agent of host " + d.Spec.Host + " is not heard"
	}
	for _, m := range p.members {
		if !slices.Contains(p.seen.Quorum, m.ID) {
			return "mon." + m.ID + " is to be in the quorum first"
		}
	}
	if missing := len(p.daemonsOf(TypeMgr)) - p.seen.Standbys - 1; !p.seen.MgrAvailable || missing > 0 && d.Spec.Type == TypeMgr {
		return "all mgrs are to be there first"
	}
	if d.Spec.Type != TypeOSD {
		return ""
	}
	answer, asked := p.seen.Restartable[label(d)]
	switch {
	case !asked:
		return "Ceph is to be asked whether it may stop"
	case !answer.OK:
		return "Ceph says that it may not stop now: " + answer.Reason
	}
	return ""
}

// fillRestartable asks whether the first OSD that is to be started again may stop. What a plan would find is asked of a planner.
func (c *conn) fillRestartable(ctx context.Context, view *engine.View, o *Observation) {
	if o.Config == nil {
		return
	}
	seen := *view
	seen.System = o
	p := newPlanner(&seen, c.now())
	p.identity()
	p.planConfig()
	if !p.configStored {
		return
	}
	osds := slices.DeleteFunc(p.toRestart(), func(d *api.Daemon) bool { return d.Spec.Type != TypeOSD || told(d) })
	if len(osds) == 0 {
		return
	}
	id, err := strconv.Atoi(osds[0].Spec.ID)
	if err != nil {
		return
	}
	down := downWithout(view.Daemons, o.OSDs, "")
	if !slices.Contains(down, id) {
		down = append(down, id)
	}
	o.Restartable = map[string]StopAnswer{label(osds[0]): c.okToStop(ctx, o, down)}
}
