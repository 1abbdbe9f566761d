package ceph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// mirrorPlan is an RBDMirror while it is planned.
type mirrorPlan struct {
	*api.RBDMirror
	service *service
	// refusals say why it cannot be as it is declared, waits what it waits for.
	refusals, waits objections
}

func (x *mirrorPlan) object() string { return engine.ResourceObject(x.RBDMirror) }

// MirrorFacts are what agents, managers and Secrets say of mirroring. Nobody writes to them.
type MirrorFacts struct {
	// Reports are those of daemons that run, by the names of their Daemons.
	Reports map[string]*rbdmirror.Report
	// Tokens are the other clusters by the names of their Secrets: an fsid, or why there is none.
	Tokens map[string]MirrorToken
	// Schedules are the intervals of pools with which images get snapshots; a pool that could not be asked about is missing.
	Schedules map[string][]string
}

// MirrorToken is another cluster, or what is wrong with the Secret that should say where it is.
type MirrorToken struct {
	FSID    string
	Problem engine.Objection
	// Sum tells the token from others, and nothing of what is in it.
	Sum string
}

// declareMirrors finds the daemons that are wanted.
func (p *planner) declareMirrors() {
	for _, m := range engine.OfKind[*api.RBDMirror](p.view.Resources) {
		x := &mirrorPlan{RBDMirror: m}
		x.service = &service{
			crew:     crew{daemonType: rbdmirror.Type, noun: "rbd-mirror", field: "spec.placement.count", count: x.count(), least: min(1, x.count())},
			resource: m, placement: &x.Spec.Placement,
			there: func(id string) bool {
				return p.mirrorReport(p.have[daemonName(p.cluster.Name, kindOf(rbdmirror.Type), id)]) != nil
			},
			finish: func(d *api.Daemon, at seat) { p.finishMirror(x, d, at) },
		}
		p.mirrors = append(p.mirrors, x)
		p.serve(x.service)
		x.refusals.add(x.service.refusal)
	}
}

// count is how many daemons there are to be: one without a number, none of one that is deleted.
func (x *mirrorPlan) count() int {
	switch n := x.Spec.Placement.Count; {
	case x.DeletionTimestamp != nil:
		return 0
	case n != nil:
		return int(*n)
	}
	return 1
}

// mirrorReport is what the agent of a daemon says of it, while it answers; nil where nothing counts.
func (p *planner) mirrorReport(d *api.Daemon) *rbdmirror.Report {
	if d == nil || p.seen == nil || d.Status.State != api.DaemonRunning || !p.hosts[d.Spec.Host].AgentHeard() {
		return nil
	}
	if r := p.seen.Mirrors.Reports[d.Name]; r != nil && r.Up && r.PID == d.Status.PID {
		return r
	}
	return nil
}

// finishMirror completes the Daemon.
func (p *planner) finishMirror(x *mirrorPlan, d *api.Daemon, at seat) {
	entity := rbdmirror.Entity(at.id)
	d.Spec.Command = []string{"rbd-mirror", "-f", "-n", entity, "-c", "${DATA}/" + FileConf}
	d.Spec.Parameters[api.ParameterReport] = "mirroring"
	var pools []string
	for _, pool := range x.Spec.Pools {
		pools = append(pools, pool.Name)
	}
	d.Spec.Parameters[rbdmirror.ParamPools] = strings.Join(pools, " ")
	options := daemonOptions(rbdmirror.Type, at.address)
	options["keyring"] = "${DATA}/" + FileKeyring
	facts := p.confFacts()
	conf := facts.render(map[string]map[string]string{"global": facts.global(), entity: options}, d.Spec.Parameters[ParamConfig])
	d.Spec.Files[0].Sources = []api.FileSource{{Text: &conf}}
}

// planMirrors finds what keeps mirroring from being as it is declared.
func (p *planner) planMirrors() {
	for _, x := range p.mirrors {
		if x.DeletionTimestamp != nil {
			continue
		}
		for i := range x.Spec.Pools {
			p.checkMirrorPool(x, &x.Spec.Pools[i])
		}
		x.service.held = x.service.held || len(x.refusals) > 0
		p.object(x.object(), x.refusals...)
		p.object(x.object(), x.waits...)
	}
}

func (p *planner) checkMirrorPool(x *mirrorPlan, pool *api.RBDMirrorPool) {
	for _, other := range p.mirrors {
		if other != x && other.DeletionTimestamp == nil && slices.ContainsFunc(other.Spec.Pools, func(o api.RBDMirrorPool) bool { return o.Name == pool.Name }) {
			x.refusals.refuse(api.ReasonConflict, "RBDMirror %s also has pool %s: remove it from one of them",
				other.Name, pool.Name)
		}
	}
	if !p.reachable() {
		return
	}
	switch lost := p.lostPool(pool.Name); {
	case lost != nil:
		x.waits.wait(api.ReasonDependencyNotReady, "%s", lost.why)
	case p.poolNamed(pool.Name) == nil:
		x.waits.wait(api.ReasonDependencyNotReady,
			"pool %s does not exist in Ceph yet: declare it as a Pool of application rbd", pool.Name)
	}
	if pool.PeerSecret == "" {
		return
	}
	switch token, known := p.seen.Mirrors.Tokens[pool.PeerSecret]; {
	case !known:
		x.waits.wait(api.ReasonDependencyNotReady, "cannot read Secret %s with the other cluster's token", pool.PeerSecret)
	case !token.Problem.None():
		x.refusals.add(token.Problem)
	case token.FSID == p.fsid:
		x.refusals.refuse(api.ReasonInvalidSpec,
			"Secret %s has the token of this cluster: use the token of the other cluster", pool.PeerSecret)
	}
}

// fillMirrors reads what agents say of mirroring, and the tokens of other clusters.
func (o *Observation) fillMirrors(ctx context.Context, view *engine.View, secrets engine.SecretReader) {
	o.Mirrors.Reports, o.Mirrors.Tokens = map[string]*rbdmirror.Report{}, map[string]MirrorToken{}
	for i := range view.Daemons {
		if d := &view.Daemons[i]; d.Spec.Type == rbdmirror.Type {
			if r, err := rbdmirror.Parse(d.Status.Report); err == nil && r != nil {
				o.Mirrors.Reports[d.Name] = r
			}
		}
	}
	for _, m := range engine.OfKind[*api.RBDMirror](view.Resources) {
		for _, pool := range m.Spec.Pools {
			if pool.PeerSecret == "" {
				continue
			}
			data, err := secrets.Secret(ctx, pool.PeerSecret)
			switch {
			case errors.Is(err, engine.ErrNotFound):
				o.Mirrors.Tokens[pool.PeerSecret] = MirrorToken{Problem: engine.Refusal(api.ReasonDependencyNotReady,
					"Secret %s of type %s does not exist in namespace %s: create it with 'holdfast ceph mirror-token' in the "+
						"other cluster", pool.PeerSecret, api.SecretTypeMirrorToken, m.Namespace)}
			case err == nil:
				o.Mirrors.Tokens[pool.PeerSecret] = tokenOf(pool.PeerSecret, data)
			}
		}
	}
}

func tokenOf(name string, data map[string][]byte) MirrorToken {
	t, err := rbdmirror.Decode(string(data[api.SecretEntryToken]))
	if err != nil {
		return MirrorToken{Problem: engine.Refusal(api.ReasonInvalidSpec, "the entry %s of Secret %s: %v",
			api.SecretEntryToken, name, err)}
	}
	sum := sha256.Sum256([]byte(t.Encode()))
	return MirrorToken{FSID: t.FSID, Sum: hex.EncodeToString(sum[:8])}
}

// told is what the status says of a pool; nothing where it does not.
func (x *mirrorPlan) told(pool string) api.RBDMirrorPoolStatus {
	return toldOf(x.RBDMirror, pool)
}

func toldOf(m *api.RBDMirror, pool string) api.RBDMirrorPoolStatus {
	for _, s := range m.Status.Pools {
		if s.Name == pool {
			return s
		}
	}
	return api.RBDMirrorPoolStatus{}
}

// otherToken says that a pool has its peer by another token than the Secret has now.
func (p *planner) otherToken(x *mirrorPlan, pool *api.RBDMirrorPool, have *rbdmirror.Pool) string {
	was, now := x.told(pool.Name).PeerToken, p.seen.Mirrors.Tokens[pool.PeerSecret].Sum
	if pool.PeerSecret == "" || !have.Fetches() || was == "" || now == "" || was == now {
		return ""
	}
	return fmt.Sprintf("pool %s still uses the old token; Secret %s has a new one. To use it, remove the peer: "+
		"'holdfast ceph shell -- rbd mirror pool peer remove %s %s'", pool.Name, pool.PeerSecret, pool.Name, have.Fetched())
}

// notePool is what is to be known of a pool later: the schedule that was set for it, until Ceph has it no more, and then the one that is about to be set;
// and the token of its peer, as it is about to be or is.
func (p *planner) notePool(x *mirrorPlan, pool *api.RBDMirrorPool, have *rbdmirror.Pool, s *api.RBDMirrorPoolStatus) {
	was := x.told(pool.Name)
	s.SnapshotInterval = was.SnapshotInterval
	if schedules, asked := p.seen.Mirrors.Schedules[pool.Name]; asked && !slices.Contains(schedules, was.SnapshotInterval) {
		s.SnapshotInterval = rbdmirror.Interval(pool.SnapshotInterval)
	}
	switch now := p.seen.Mirrors.Tokens[pool.PeerSecret].Sum; {
	case have.Fetches() && was.PeerToken != "":
		s.PeerToken = was.PeerToken
	default:
		s.PeerToken = now
	}
}
