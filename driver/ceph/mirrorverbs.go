package ceph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// verbMirrorSchedule has the images of a pool that are mirrored by snapshots get one at an interval, and at no other. It goes to the manager.
const verbMirrorSchedule = "rbd mirror snapshot schedule"

// writeMirrors asks for what brings mirroring to how it is declared. The agents of daemons look after the pools.
func (p *planner) writeMirrors() {
	p.peerKey()
	for _, x := range p.mirrors {
		if x.DeletionTimestamp != nil || len(x.refusals) > 0 {
			continue
		}
		daemon, report := p.mirrorSpeaker(x)
		for i := range x.Spec.Pools {
			pool := &x.Spec.Pools[i]
			if p.poolNamed(pool.Name) != nil && p.lostPool(pool.Name) == nil {
				p.bringMirror(x, pool, daemon, report)
			}
		}
	}
}

// peerKey has the key of whom other clusters' daemons come as, while there is an RBDMirror.
func (p *planner) peerKey() {
	wanted := slices.ContainsFunc(p.mirrors, func(x *mirrorPlan) bool { return x.DeletionTimestamp == nil })
	there := p.hasSecret(rbdmirror.PeerEntity)
	switch known := p.seen.Entities[rbdmirror.PeerEntity]; {
	case p.seen.Entities == nil:
	case wanted && there && !known:
		p.command(api.ReasonDeclared, verbAuthImport, rbdmirror.PeerEntity, nil, "its key is not in Ceph's auth database")
	case !wanted && there && known:
		p.command(api.ReasonRemoving, verbAuthRm, rbdmirror.PeerEntity, nil, "no pool is mirrored any more")
	case !wanted && there:
		p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{Name: secretName(p.cluster.Name, rbdmirror.PeerEntity), Gone: true})
	}
}

// mirrorSpeaker is the first daemon that answers and has told of pools, and what it told.
func (p *planner) mirrorSpeaker(x *mirrorPlan) (*api.Daemon, *rbdmirror.Report) {
	for _, d := range p.membersOf(&x.service.crew) {
		if r := p.mirrorReport(d); r != nil && !told(d) && d.DeletionTimestamp == nil {
			return d, r
		}
	}
	return nil, nil
}

func modeWord(pool *api.RBDMirrorPool) string {
	return strings.ToLower(string(cmp.Or(pool.Mode, api.RBDMirrorImage)))
}

// bringMirror asks for what a pool lacks: that its images are mirrored, from where they are fetched, and when they get snapshots.
func (p *planner) bringMirror(x *mirrorPlan, pool *api.RBDMirrorPool, d *api.Daemon, r *rbdmirror.Report) {
	if d == nil {
		return
	}
	have, known := r.Pools[pool.Name]
	ask := func(verb, secret string, params map[string]string, reason string) {
		params[rbdmirror.ParamPool] = pool.Name
		p.plan.Commands = append(p.plan.Commands, engine.Command{
			Verb: verb, Object: x.object(), Params: params, Daemon: d.Name, Secret: secret, Line: mirrorLine(x, pool.Name), Reason: reason, Risk: api.RiskNone,
		})
		p.decide(api.VerdictDo, api.ReasonDeclared, x.object(), "%s of %s: %s", verb, pool.Name, reason)
	}
	switch {
	case !known:
		return
	case have.Mode != modeWord(pool):
		ask(rbdmirror.VerbEnable, "", map[string]string{rbdmirror.ParamMode: modeWord(pool)},
			"enable mirroring of its images")
	case pool.PeerSecret != "" && !have.Fetches() && p.seen.Mirrors.Tokens[pool.PeerSecret].FSID != "":
		ask(rbdmirror.VerbImport, pool.PeerSecret, map[string]string{}, "fetch its images from the other cluster")
	}
	p.bringSchedule(x, pool)
}

// bringSchedule asks for the one schedule that is wanted, or for the end of the one that was set before, which has to be gone first: the status names one.
func (p *planner) bringSchedule(x *mirrorPlan, pool *api.RBDMirrorPool) {
	schedules, asked := p.seen.Mirrors.Schedules[pool.Name]
	wanted, ours := rbdmirror.Interval(pool.SnapshotInterval), x.told(pool.Name).SnapshotInterval
	was, reason := strings.Join(schedules, " "), fmt.Sprintf("take a snapshot of the images of %s every %s",
		pool.Name, wanted)
	switch {
	case !asked, wanted != "" && slices.Equal(schedules, []string{wanted}):
		return
	case wanted != ours && slices.Contains(schedules, ours):
		was, wanted, reason = ours, "", fmt.Sprintf("remove the snapshot schedule of %s (every %s)", pool.Name, ours)
	case wanted == "":
		return // others are a person's
	}
	p.command(api.ReasonDeclared, verbMirrorSchedule, x.object(),
		map[string]string{paramPool: pool.Name, paramValue: wanted, paramWas: was}, reason)
	p.plan.Commands[len(p.plan.Commands)-1].Line = mirrorLine(x, pool.Name)
}

// mirrorLine is what commands about a pool depend on.
func mirrorLine(x *mirrorPlan, pool string) string { return x.object() + " " + pool }

// The parameters of verbMirrorSchedule beside paramValue.
const (
	paramPool = "pool"
	paramWas  = "was"
)

// fillSchedules asks the manager for the schedules of pools that are to have one, or had one.
func (c *conn) fillSchedules(ctx context.Context, view *engine.View, o *Observation) {
	o.Mirrors.Schedules = map[string][]string{}
	if !o.MgrAvailable {
		return
	}
	for _, m := range engine.OfKind[*api.RBDMirror](view.Resources) {
		for _, pool := range m.Spec.Pools {
			exists := slices.ContainsFunc(o.Pools, func(x Pool) bool { return x.Name == pool.Name })
			if pool.SnapshotInterval == "" && toldOf(m, pool.Name).SnapshotInterval == "" || !exists || m.DeletionTimestamp != nil {
				continue
			}
			var answer map[string]struct {
				Name     string `json:"name"`
				Schedule []struct {
					Interval string `json:"interval"`
				} `json:"schedule"`
			}
			if c.askMgr(ctx, command{"prefix": "rbd mirror snapshot schedule list", "level_spec": pool.Name + "/", "format": "json"}, &answer) != nil {
				continue
			}
			intervals := []string{}
			for _, level := range answer {
				if strings.Trim(level.Name, "/") != pool.Name {
					continue // of one image, or a namespace
				}
				for _, s := range level.Schedule {
					intervals = append(intervals, s.Interval)
				}
			}
			slices.Sort(intervals)
			o.Mirrors.Schedules[pool.Name] = intervals
		}
	}
}

// mirrorSchedule takes other intervals away, and adds the one that is wanted, if one is.
func (c *conn) mirrorSchedule(ctx context.Context, r request) error {
	for _, was := range strings.Fields(r.Params[paramWas]) {
		if was != r.Params[paramValue] {
			if _, err := c.client.Mgr(ctx, command{"prefix": verbMirrorSchedule + " remove", "level_spec": r.Params[paramPool] + "/", "interval": was}, nil); err != nil {
				return wrapped(err, r)
			}
		}
	}
	if r.Params[paramValue] == "" {
		return nil
	}
	_, err := c.client.Mgr(ctx, command{"prefix": verbMirrorSchedule + " add", "level_spec": r.Params[paramPool] + "/", "interval": r.Params[paramValue]}, nil)
	return wrapped(err, r)
}

// mirrorScheduled has the manager have the one schedule, or one less.
func (f *foresight) mirrorScheduled(r request) {
	all := []string{r.Params[paramValue]}
	if r.Params[paramValue] == "" {
		all = slices.DeleteFunc(slices.Clone(f.Mirrors.Schedules[r.Params[paramPool]]), func(s string) bool { return s == r.Params[paramWas] })
	}
	f.Mirrors.Schedules[r.Params[paramPool]] = all
}

// mirrorsSaid is a copy of what was said of mirroring, to be changed.
func mirrorsSaid(was MirrorFacts) MirrorFacts {
	now := MirrorFacts{Reports: map[string]*rbdmirror.Report{}, Tokens: was.Tokens, Schedules: maps.Clone(was.Schedules)}
	if now.Schedules == nil {
		now.Schedules = map[string][]string{}
	}
	for name, r := range was.Reports {
		c := *r
		c.Pools = maps.Clone(r.Pools)
		now.Reports[name] = &c
	}
	return now
}

// mirrors has daemons answer that will run, and tell of the pools that they are asked about.
func (f *foresight) mirrors() {
	for _, d := range f.daemonsOf(rbdmirror.Type) {
		r := f.Mirrors.Reports[d.Name]
		if !f.runs(d, r != nil && r.Up) {
			continue
		}
		if r == nil {
			r = &rbdmirror.Report{}
			f.Mirrors.Reports[d.Name] = r
		}
		r.Up, r.PID = true, d.Status.PID
		if r.Pools == nil {
			r.Pools = map[string]rbdmirror.Pool{}
		}
		for _, name := range strings.Fields(d.Spec.Parameters[rbdmirror.ParamPools]) {
			if _, known := r.Pools[name]; !known && slices.ContainsFunc(f.Pools, func(p Pool) bool { return p.Name == name }) {
				r.Pools[name] = rbdmirror.Pool{Mode: "disabled"}
			}
		}
	}
}

// mirrorDone has a pool be mirrored as a command asked for, in the words of all daemons.
func (f *foresight) mirrorDone(cmd engine.Command) {
	for _, r := range f.Mirrors.Reports {
		pool, known := r.Pools[cmd.Params[rbdmirror.ParamPool]]
		switch {
		case !known:
			continue
		case cmd.Verb == rbdmirror.VerbEnable:
			pool.Mode, pool.Health = cmd.Params[rbdmirror.ParamMode], "OK"
		case cmd.Verb == rbdmirror.VerbImport:
			pool.Peers = append(slices.Clone(pool.Peers), rbdmirror.Peer{Direction: "rx-only"})
		}
		r.Pools[cmd.Params[rbdmirror.ParamPool]] = pool
	}
}

// MirrorTokenOf makes the bootstrap token of the view's cluster, by which another one fetches images from it.
func MirrorTokenOf(ctx context.Context, view *engine.View, secrets engine.SecretReader) (string, error) {
	data, err := secrets.Secret(ctx, secretName(view.Cluster.Name, rbdmirror.PeerEntity))
	if errors.Is(err, engine.ErrNotFound) {
		return "", fmt.Errorf("cluster %s has no key for other clusters yet: declare an RBDMirror for it and wait until "+
			"the RBDMirror is Online", view.Cluster.Name)
	}
	if err != nil {
		return "", err
	}
	cfg, err := configOf(ctx, view, secrets)
	if err != nil {
		return "", err
	}
	return rbdmirror.Token{FSID: cfg.FSID, ClientID: strings.TrimPrefix(rbdmirror.PeerEntity, clientPrefix), Key: string(data[secretKey]), MonHost: cfg.MonHost}.Encode(), nil
}
