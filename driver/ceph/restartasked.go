package ceph

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// What stops for a moment because somebody asks for its restart is asked of Ceph: "osd ok-to-stop" of an OSD and all that are down, "mon
// ok-to-stop", and "mds ok-to-stop". That a mgr stops harms no data and no client: without another one it is back within seconds. Nor does it
// harm Ceph when its clients stop: gateways, NFS servers, and what mirrors images.

// fillRestart asks about the daemon whose restart the view asks for, and nothing where it asks for none.
func (c *conn) fillRestart(ctx context.Context, view *engine.View, o *Observation) {
	d := view.DaemonsByName()[view.Restart]
	if d == nil {
		return
	}
	answer := StopAnswer{OK: true}
	switch d.Spec.Type {
	case TypeOSD:
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && osdOf(d, o.OSDs).Up {
			down := slices.DeleteFunc(downWithout(view.Daemons, o.OSDs, ""), func(x int) bool { return x == id })
			answer = c.okToStop(ctx, o, append(down, id))
		}
	case TypeMon:
		answer = c.okByMons(ctx, "mon ok-to-stop", d.Spec.ID)
	case TypeMDS:
		if o.FS == nil || o.FS.Knows(d.Spec.ID) {
			answer = c.okByMons(ctx, "mds ok-to-stop", d.Spec.ID)
		}
	}
	o.Restart = &answer
}

// okByMons asks the mons whether a daemon may stop.
func (c *conn) okByMons(ctx context.Context, prefix, id string) (a StopAnswer) {
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	_, err := c.client.Mon(ctx, command{"prefix": prefix, "ids": []string{id}, "format": "json"}, nil)
	a.take(err, "the quorum of mons")
	return a
}

// judgeRestart says what is against the restart that the view asks for.
func (p *planner) judgeRestart() {
	d := p.have[p.view.Restart]
	if d == nil || !slices.Contains([]string{TypeOSD, TypeMon, TypeMDS}, d.Spec.Type) {
		return
	}
	if o := p.againstRestart(d); !o.None() {
		p.object(engine.RestartObject(d.Name), o)
	}
}

func (p *planner) againstRestart(d *api.Daemon) (none engine.Objection) {
	switch {
	case p.seen == nil || !p.seen.Reachable || p.seen.Restart == nil:
		return engine.Refusal(api.ReasonNotAnswering, "cannot check %s: the mons do not answer", label(d))
	case p.seen.FSID != clusterFSID(p.view):
		return engine.Refusal(api.ReasonConflict, "mons of another cluster (fsid %s) answer", p.seen.FSID)
	}
	if other := p.changing(d); other != "" {
		return engine.Wait(api.ReasonOneAtATime, "%s; only one daemon at a time", other)
	}
	answer := p.seen.Restart
	said := words.Cut(answer.Reason, maxMessage/4)
	switch {
	case answer.OK:
		return none
	case answer.Unknown:
		return engine.Objection{
			Verdict: p.soon(d.Spec.Type != TypeOSD || p.seen.MgrAvailable || p.mgrRuns()), Reason: answer.against(),
			Message: fmt.Sprintf("Ceph cannot say whether %s may stop: %s", label(d), said),
		}
	}
	if down := p.alsoDown(d); len(down) > 0 && d.Spec.Type == TypeOSD {
		said += ", with " + words.Few(down) + " down already"
	}
	return engine.Objection{
		Verdict: p.soon(p.heals(d)), Reason: answer.againstOne(d),
		Message: fmt.Sprintf("cannot stop %s now; Ceph reports: %s", label(d), said),
	}
}

// againstOne is the reason why a daemon may not stop: a mon is needed for the quorum.
func (a StopAnswer) againstOne(d *api.Daemon) api.Reason {
	if d.Spec.Type == TypeMon && !a.Unknown {
		return api.ReasonQuorumAtRisk
	}
	return a.against()
}

// changing says which other daemon of the same type is down for a while only: the plan has told it to stop, to start it again or to remove it, or its
// process was started a moment ago.
func (p *planner) changing(d *api.Daemon) string {
	for i := range p.view.Daemons {
		x := &p.view.Daemons[i]
		if x.Name == d.Name || x.Spec.Type != d.Spec.Type || x.DeletionTimestamp != nil || x.Spec.State == api.WantPrepared || resting(x) || p.closed(x.Spec.Host) {
			continue
		}
		if h := p.hosts[x.Spec.Host]; h != nil && h.AgentHeard() && (told(x) || p.justStarted(x)) {
			return label(x) + " is being " + becoming(x)
		}
	}
	return ""
}

// becoming is what is done with a daemon that is down for a while.
func becoming(d *api.Daemon) string {
	if told(d) && drains(d) {
		return "stopped to be removed"
	}
	return "started again"
}

// justStarted says whether a mon or an OSD runs, and Ceph has not seen it yet.
func (p *planner) justStarted(d *api.Daemon) bool {
	since := d.Status.Started
	if d.Status.State != api.DaemonRunning || since == nil || p.now.Sub(since.Time).Abs() > p.waits.DaemonFresh {
		return false
	}
	return d.Spec.Type == TypeOSD && !osdOf(d, p.seen.OSDs).Up || d.Spec.Type == TypeMon && !slices.Contains(p.seen.Quorum, d.Spec.ID)
}

// soon is the verdict on what is over by itself, or is not.
func (p *planner) soon(passes bool) api.Verdict {
	if passes {
		return api.VerdictWait
	}
	return api.VerdictRefuse
}

// mgrRuns says whether a mgr is about to answer.
func (p *planner) mgrRuns() bool {
	return slices.ContainsFunc(p.daemonsOf(TypeMgr), func(d *api.Daemon) bool {
		h := p.hosts[d.Spec.Host]
		return d.Status.State == api.DaemonRunning && h != nil && h.AgentHeard()
	})
}

// heals says whether Ceph itself is about to change its answer: all OSDs that are to have data are up and copies are being made, or an MDS has
// taken over and does not serve yet.
func (p *planner) heals(d *api.Daemon) bool {
	switch d.Spec.Type {
	case TypeOSD:
		return len(p.alsoDown(d)) == 0 && (p.seen.PGs < p.seen.PGsWanted || p.seen.PGsClean < p.seen.PGs)
	case TypeMDS:
		return p.seen.FS != nil && p.seen.FS.TakingOver()
	}
	return false
}

// alsoDown names the other OSDs that belong to the data and are down, or are to be.
func (p *planner) alsoDown(d *api.Daemon) []string {
	var names []string
	for _, id := range downWithout(p.view.Daemons, p.seen.OSDs, "") {
		if name := "osd." + strconv.Itoa(id); name != label(d) && p.seen.OSDs[id].In {
			names = append(names, name)
		}
	}
	return names
}
