package ceph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/deaf"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// planRestarts starts daemons again that need it for what spec.ceph.config asks for now, or because a newer release is installed on their hosts, one
// after the other: the next when Ceph has the one before back.
func (p *planner) planRestarts() {
	if !p.reachable() {
		return
	}
	if all := p.toRestart(); len(all) > 0 {
		p.restart(all[0], len(all)-1)
	}
	p.tellUpgrade()
}

// toRestart are the daemons that are to be started again, those that are on their way first, then mons, managers, OSDs, and the rest. Those of
// hosts that are closed get theirs when they start again there, or elsewhere. An NFS server is a client of Ceph: it starts with none of its options,
// and works with releases older and newer than Ceph's.
func (p *planner) toRestart() []*api.Daemon {
	var all []*api.Daemon
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.Spec.Type != ganesha.Type && d.DeletionTimestamp == nil && d.Spec.State != api.WantPrepared && !ended(d) && !resting(d) && !p.closed(d.Spec.Host) && !drains(d) &&
			p.restartReason(d) != "" {
			all = append(all, d)
		}
	}
	return p.restartOrder(all)
}

// restartReason says why a daemon is to be started again, in words that say the same of all that are for the same reason; empty where it is not.
func (p *planner) restartReason(d *api.Daemon) string {
	var why []string
	if p.seen.Config != nil && p.configStored {
		if options := p.startedWithout(d); len(options) > 0 {
			count := map[bool]string{true: "counts", false: "count"}[len(options) == 1]
			why = append(why, fmt.Sprintf("%s in spec.ceph %s from its start", words.Few(options), count))
		}
	}
	if d.Spec.Type == TypeMgr && orch.Misses(d, &p.spec, p.seen.Orch) {
		why = append(why, "it loads the module of 'ceph orch' when it starts")
	}
	if release := p.newer(d); release != "" && p.upgradeAwaits(d).None() {
		why = append(why, fmt.Sprintf("its host has Ceph %s, but it runs %s", release, d.Status.Version))
	}
	if hangs(p, d) {
		why = append(why, "its process runs, but Ceph does not hear from it")
	}
	if asked.Restart(d) {
		why = append(why, "a user asked for it")
	}
	return strings.Join(why, ", and ")
}

func hangs(p *planner, d *api.Daemon) bool {
	return d.Spec.Type == TypeMgr && deaf.Mgr(d, p.seen.ActiveMgr, p.seen.Standbys, p.now, p.waits.MgrHangs)
}

// coreTypes are the types of daemons without which Ceph is not whole, and restartTypes all that are started again, each in their order, which is
// that of an upgrade (Ceph docs, "Upgrading"). One of another type than coreTypes that does not run keeps only its own kind waiting.
var (
	coreTypes    = []string{TypeMon, TypeMgr, TypeOSD}
	restartTypes = append(slices.Clip(slices.Clone(coreTypes)), TypeMDS, rgw.Type, rbdmirror.Type)
)

// restartOrder sorts daemons: of the MDS, those that stand by come before those that work, which can then hand over to one that was started again.
func (p *planner) restartOrder(daemons []*api.Daemon) []*api.Daemon {
	rank := func(d *api.Daemon) int {
		if told(d) {
			return -1
		}
		return 2*slices.Index(restartTypes, d.Spec.Type) + map[bool]int{true: 1}[p.serving(d)]
	}
	slices.SortStableFunc(daemons, func(a, b *api.Daemon) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.Spec.ID), len(b.Spec.ID)), strings.Compare(a.Spec.ID, b.Spec.ID))
	})
	return daemons
}

// serving says whether an MDS has a rank.
func (p *planner) serving(d *api.Daemon) bool {
	return d.Spec.Type == TypeMDS && p.fsKnown() && p.seen.FS.Serves(d.Spec.ID)
}

// restart stops a daemon if all others can do without it; it starts again by itself when it has stopped. So many more follow.
func (p *planner) restart(d *api.Daemon, more int) {
	why := p.restartReason(d)
	wait := p.unready(d)
	stopping := engine.Wait(api.ReasonRestarting, "it is stopping")
	switch {
	case told(d):
		p.stop[d.Name], wait = true, stopping
	case !wait.None():
	case d.Spec.Type == TypeMgr && d.Spec.ID == p.seen.ActiveMgr && p.seen.Standbys > 0:
		p.command(api.ReasonHandingOver, verbMgrFail, label(d), nil, "restarting: "+why)
		wait = engine.Wait(api.ReasonHandingOver, "waiting for another mgr to take over")
	default:
		p.stop[d.Name], wait = true, stopping
		p.again[d.Name] = why
	}
	p.moving = true
	if more > 0 {
		wait.Message += fmt.Sprintf("; %s queued", words.Plural(more, "more daemon"))
	}
	p.decide(wait.Verdict, wait.Reason, label(d), "restarting: %s; %s", why, wait.Message)
}

// restartAsked names the action that has a daemon of the cluster started again, or stopped, now: two at once
// may be one too many. One that is not over after its time counts no more: its agent may never end it.
func (p *planner) restartAsked() string {
	i := slices.IndexFunc(p.view.Actions, func(a api.Action) bool {
		s := a.Status
		takes := a.Spec.Kind == api.ActionDaemonRestart || a.Spec.Kind == api.ActionDaemonStop
		return takes && a.Spec.Cluster == p.view.Cluster.Name && (s.State == api.ActionNew || s.State == api.ActionRunning) &&
			(s.Started == nil || p.now.Sub(s.Started.Time).Abs() <= p.waits.RestartEnd)
	})
	if i < 0 {
		return ""
	}
	return p.view.Actions[i].Name
}

// unready says what has to be there before a daemon may stop for a moment; none when all is.
func (p *planner) unready(d *api.Daemon) (none engine.Objection) {
	if name := p.restartAsked(); name != "" {
		return engine.Wait(api.ReasonOneAtATime, "waiting for action %s, which restarts or stops a daemon", name)
	}
	for i := range p.view.Daemons {
		x := &p.view.Daemons[i]
		matters := x.Spec.Type == d.Spec.Type || slices.Contains(coreTypes, x.Spec.Type)
		if matters && x.Name != d.Name && x.DeletionTimestamp == nil && x.Spec.State != api.WantPrepared && !p.closed(x.Spec.Host) && !resting(x) && (told(x) || x.Status.State != api.DaemonRunning) {
			return engine.Wait(api.ReasonOneAtATime, "waiting for %s, which does not run", label(x))
		}
	}
	if !p.hosts[d.Spec.Host].AgentHeard() {
		return engine.Wait(api.ReasonAgentDisconnected, "agent of host %s disconnected", d.Spec.Host)
	}
	for _, m := range p.members {
		if !slices.Contains(p.seen.Quorum, m.ID) {
			return engine.Wait(api.ReasonJoining, "waiting for mon.%s to join the quorum", m.ID)
		}
	}
	missing := len(p.daemonsOf(TypeMgr)) - p.seen.Standbys - 1
	if (!p.seen.MgrAvailable || missing > 0 && d.Spec.Type == TypeMgr) && !hangs(p, d) {
		return engine.Wait(api.ReasonStarting, "waiting for all mgrs to run")
	}
	if d.Spec.Type != TypeOSD {
		return p.serviceUnready(d)
	}
	answer, asked := p.seen.Restartable[label(d)]
	switch {
	case !asked || !answer.covers(p.downSoon()):
		return engine.Wait(api.ReasonNotAnswering, "waiting for Ceph's answer whether it may stop (ok-to-stop)")
	case !answer.OK:
		return engine.Wait(answer.against(), "cannot stop it now: %s", answer.Reason)
	}
	return none
}

// fillRestartable asks whether the first OSD that is to be started again may stop.
func (c *conn) fillRestartable(ctx context.Context, view *engine.View, o *Observation) {
	if name, down := nextRestart(view, o); name != "" {
		o.Restartable = map[string]StopAnswer{name: c.okToStop(ctx, o, down)}
	}
}

// nextRestart is the label of the first OSD that is to be started again, and all OSDs that are down with it, which is what Ceph is asked about. What a
// plan would find is asked of a planner.
func nextRestart(view *engine.View, o *Observation) (name string, down []int) {
	seen := *view
	seen.System = o
	p := newPlanner(&seen, time.Time{})
	p.identity()
	p.planConfig()
	osds := slices.DeleteFunc(p.toRestart(), func(d *api.Daemon) bool { return d.Spec.Type != TypeOSD || told(d) })
	if len(osds) == 0 {
		return "", nil
	}
	id, err := strconv.Atoi(osds[0].Spec.ID)
	if err != nil {
		return "", nil
	}
	down = downWithout(view.Daemons, o.OSDs, "")
	if !slices.Contains(down, id) {
		down = append(down, id)
	}
	return label(osds[0]), down
}
