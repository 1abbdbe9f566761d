package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// RecoverKind is the kind of Actions that bring the mons of a cluster back whose quorum is lost for good. Such an Action lies in the
// namespace of its cluster; its target is "storagecluster/<name>".
const RecoverKind = "ceph.recover-mons"

// The parameters of an Action of RecoverKind.
const (
	// RecoverFrom is what the first mon is made of: a monstore.Way, without it Alone.
	RecoverFrom = "from"
	// RecoverLost are hosts that never come back, joined by commas.
	RecoverLost = "lost"
	// RecoverForce is hosts.Yes where something newer is given up knowingly.
	RecoverForce = "force"
)

// The steps of a recovery.
const (
	recoverStop    = "stop"
	recoverLook    = "look"
	recoverRebuild = "rebuild"
	recoverFound   = "found"
	recoverKeys    = "keys"
	recoverServe   = "serve"
)

// Recoverer carries out Actions of RecoverKind. While one is under way, up to the step keys, the plans of the cluster change nothing:
// the Action alone stops and starts its daemons.
type Recoverer struct {
	Store  engine.Store
	Driver *Driver
}

var _ action.Handler = Recoverer{}

// Kind implements action.Handler.
func (Recoverer) Kind() action.Kind {
	return action.Kind{
		Name: RecoverKind, Executor: api.ByLeader, Mode: action.Exclusive, Timeout: 12 * time.Hour, ExpiresAfter: time.Hour,
		Steps:   []string{recoverStop, recoverLook, recoverRebuild, recoverFound, recoverKeys, recoverServe},
		Summary: "brings the mons of a Ceph cluster back whose quorum is lost for good (see 'holdfast ceph recover-mons')",
	}
}

// recovery is an Action of RecoverKind with its cluster as it is now.
type recovery struct {
	Recoverer
	view  *engine.View
	token string
	way   monstore.Way
	lost  []string
	force bool
}

// newRecovery reads what is asked for. The error wraps action.ErrRefused where it makes no sense.
func newRecovery(view *engine.View, spec api.ActionSpec) (*recovery, error) {
	r := &recovery{view: view, way: monstore.Alone, force: spec.Parameters[RecoverForce] == hosts.Yes}
	if from := string(spec.Parameters[RecoverFrom]); from != "" {
		r.way = monstore.Way(from)
	}
	if r.way != monstore.Alone && r.way != monstore.FromOSDs {
		return nil, refusef("mons are recovered from %q (a mon's store) or %q, not from %q", monstore.Alone, monstore.FromOSDs, r.way)
	}
	if lost := string(spec.Parameters[RecoverLost]); lost != "" {
		r.lost = strings.Split(lost, ",")
	}
	return r, r.refusal()
}

func refusef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", action.ErrRefused, fmt.Sprintf(format, args...))
}

// refusal says what is wrong with a recovery as far as the view tells.
func (r *recovery) refusal() error {
	c := r.view.Cluster
	switch {
	case c.Spec.Type != api.StorageCeph:
		return refusef("storagecluster/%s is not a Ceph cluster", c.Name)
	case c.DeletionTimestamp != nil:
		return refusef("storagecluster/%s is being deleted", c.Name)
	case c.ModeOf() != api.ClusterActive:
		return refusef("spec.mode of storagecluster/%s is %s: set it to Active first, or nothing is done with the mons", c.Name, c.ModeOf())
	case slices.ContainsFunc(r.view.Daemons, isWatched):
		return refusef("daemons of storagecluster/%s are only watched, so they would neither be stopped nor looked at, and mons that run on by the old map could be a second "+
			"quorum: bring the mons back by Ceph's own means ('ceph-mon --extract-monmap', 'monmaptool', 'ceph-mon --inject-monmap')", c.Name)
	case len(r.of(TypeMon)) == 0 && len(r.of(TypeOSD)) == 0:
		return refusef("storagecluster/%s has neither mons nor OSDs that could be reached: there is nothing to recover from", c.Name)
	}
	return r.silent()
}

// silent refuses to go on without a host that may know more and may come back.
func (r *recovery) silent() error {
	hosts := r.view.HostsByName()
	var missing []string
	for i := range r.view.Daemons {
		d := &r.view.Daemons[i]
		h := hosts[d.Spec.Host]
		concerned := d.Spec.Type == TypeMon && !drains(d) || d.Spec.Type == TypeOSD && r.way == monstore.FromOSDs
		switch {
		case h == nil || !concerned:
		case slices.Contains(r.lost, d.Spec.Host) && h.AgentHeard():
			return refusef("host %s is not lost: its agent is heard", d.Spec.Host)
		case !h.AgentHeard() && !slices.Contains(r.lost, d.Spec.Host) && !slices.Contains(missing, d.Spec.Host):
			missing = append(missing, d.Spec.Host)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refusef("the agents of %s are silent, and what is on these hosts may be newer than what is left: switch them on. "+
		"If they never come back, say so with --lost %s", strings.Join(missing, ", "), strings.Join(missing, ","))
}

// of are the daemons of a type that can be reached. A mon on its way out is none any more; an OSD that is being emptied is.
func (r *recovery) of(daemonType string) []*api.Daemon {
	hosts := r.view.HostsByName()
	var all []*api.Daemon
	for i := range r.view.Daemons {
		d := &r.view.Daemons[i]
		if d.Spec.Type != daemonType || d.DeletionTimestamp != nil || daemonType == TypeMon && drains(d) {
			continue
		}
		if !slices.Contains(r.lost, d.Spec.Host) && hosts[d.Spec.Host].AgentHeard() {
			all = append(all, d)
		}
	}
	return all
}

// open reads the cluster of an action.
func (x Recoverer) open(ctx context.Context, a *api.Action) (*recovery, error) {
	view, err := x.Store.View(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
	if errors.Is(err, engine.ErrNotFound) {
		return nil, refusef("there is no StorageCluster %s in namespace %s", a.Spec.Cluster, a.Namespace)
	}
	if err != nil {
		return nil, err
	}
	r, err := newRecovery(view, a.Spec)
	if r != nil {
		r.Recoverer, r.token = x, string(a.UID)
	}
	return r, err
}

// Check implements action.Handler.
func (x Recoverer) Check(ctx context.Context, a *api.Action) error {
	r, err := x.open(ctx, a)
	if err != nil {
		return err
	}
	seen, err := x.Driver.Observe(ctx, r.view, x.Store.Secrets(r.key()))
	if o, ok := seen.(*Observation); err == nil && ok && o.Reachable {
		return refusef("the mons answer, and %s are a quorum: nothing is lost. One that is missing is brought back or replaced by itself, "+
			"'holdfast why cluster/%s' says what is waited for", strings.Join(o.Quorum, ", "), r.view.Cluster.Name)
	}
	return nil
}

func (r *recovery) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.view.Cluster.Namespace, Name: r.view.Cluster.Name}
}

// Step implements action.Handler. A host that falls silent on the way is waited for.
func (x Recoverer) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	r, err := x.open(ctx, a)
	if r == nil {
		return action.Progress{}, err
	}
	if err != nil && step != recoverServe {
		return action.Progress{}, fmt.Errorf("waiting: %s", strings.TrimPrefix(err.Error(), action.ErrRefused.Error()+": "))
	}
	do := map[string]func(context.Context) (action.Progress, error){
		recoverStop: r.stop, recoverLook: r.look, recoverRebuild: r.rebuild, recoverFound: r.found, recoverKeys: r.keys, recoverServe: r.serve,
	}[step]
	if do == nil {
		return action.Progress{}, refusef("this version of holdfast knows no step %s of %s", step, RecoverKind)
	}
	return do(ctx)
}

// Undo implements action.Handler. Once the first mon serves there is no way back: what was written since would be lost. Before that the
// stores are put back, and the plans of the cluster start the daemons again when the action has ended.
func (x Recoverer) Undo(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	r, err := x.open(ctx, a)
	if r == nil {
		return action.Progress{}, err
	}
	switch step {
	case recoverRebuild:
		return r.putBack(ctx)
	case recoverLook:
		return r.forget(ctx)
	case recoverFound:
		if r.chosen() != nil { // the plans have not changed it yet
			return r.found(ctx)
		}
	}
	return action.Progress{Done: true}, nil
}

// recovering is the recovery that has the cluster's daemons in its hands, or nil.
func recovering(view *engine.View) *api.Action {
	for i := range view.Actions {
		a := &view.Actions[i]
		if a.Spec.Kind != RecoverKind || a.Spec.Cluster != view.Cluster.Name || a.Status.State != api.ActionRunning {
			continue
		}
		if slices.ContainsFunc(a.Status.Steps, func(s api.ActionStep) bool { return s.Name == recoverKeys && s.State != api.StepDone }) {
			return a
		}
	}
	return nil
}

// planNothing is the plan while a recovery has the daemons in its hands.
func (p *planner) planNothing(a *api.Action) {
	p.identity()
	p.resolve()
	p.declareServices()
	p.members = membersOf(p.view.Daemons)
	p.decide(api.VerdictWait, api.ReasonActionActs, "cluster/"+p.cluster.Name,
		"its mons are being recovered by action/%s, which alone changes its daemons now", a.Name)
	p.writeStatus()
}

// answers says whether the mons answer, and as the right cluster.
func (r *recovery) answers(ctx context.Context) (*conn, error) {
	c, err := r.Driver.connect(ctx, r.view, r.Store.Secrets(r.key()))
	if err != nil {
		return nil, err
	}
	var status statusAnswer
	err = c.first(ctx, laterAnswer, &status)
	switch {
	case errors.Is(err, rados.ErrNoAnswer):
		return nil, nil //nolint:nilnil // they do not, and that is no error
	case err != nil:
		return nil, err
	case status.FSID != clusterFSID(r.view):
		return nil, fmt.Errorf("mons of another cluster (fsid %s) answer", status.FSID)
	}
	return c, nil
}

// Words tells a recovery before it is begun: what will be done, and what is lost by it.
func Words(view *engine.View, spec api.ActionSpec) ([]string, error) {
	r, err := newRecovery(view, spec)
	if err != nil {
		return nil, err
	}
	return r.words(), nil
}

func (r *recovery) words() []string {
	var mons []string
	for _, d := range r.of(TypeMon) {
		mons = append(mons, label(d)+" on host "+d.Spec.Host)
	}
	have := "none of its mons can be reached"
	if len(mons) > 0 {
		have = "of its mons these can be reached: " + strings.Join(mons, ", ")
	}
	lines := []string{fmt.Sprintf("storagecluster/%s (fsid %s): %s", r.view.Cluster.Name, clusterFSID(r.view), have)}
	if len(r.lost) > 0 {
		lines = append(lines, "never to come back: "+strings.Join(r.lost, ", "))
	}
	if r.way == monstore.Alone {
		lines = append(lines,
			"1. These mons are stopped. OSDs and mgrs go on.",
			"2. Their stores are looked at. If those that are whole are a quorum, it ends here and nothing is changed.",
			"3. In the store of the one that knows the most, the others are taken out of the map. A copy of the store is kept.",
			"4. It starts alone. The other mons leave; their stores are kept, aside.",
			"5. New mons join it, one after the other, until there are as many as spec.ceph.mon.count says.",
			"LOST: what the others knew and this one does not, mostly the last moments before the quorum was lost.")
	} else {
		lines = append(lines,
			fmt.Sprintf("1. All daemons that can be reached stop: %d mons, %d OSDs, %d mgrs. Nobody can read or write until step 6.",
				len(mons), len(r.osds()), len(r.of(TypeMgr))),
			"2. The stores are looked at. If one of a mon is whole, it ends here and nothing is changed.",
			"3. On the host of the OSD with the newest map, the OSDs give their maps, and the store of a mon is made of these and of the keys in the Secrets.",
			"4. That mon starts alone. The other mons leave; their stores are kept, aside.",
			"5. The keys of OSDs, mgrs and Clients are imported from the Secrets.",
			"6. OSDs and mgrs start, and new mons join, one after the other, until there are as many as spec.ceph.mon.count says.",
			"LOST: what 'ceph config set' set, keys that are in no Client or Secret, pools that were just being made, and the maps of CephFS file systems",
			"      (their data stays: 'ceph fs new NAME METADATA-POOL DATA-POOL --fscid ID --force --recover', then 'ceph fs set NAME joinable true').")
	}
	if r.force {
		lines = append(lines, "FORCED: stores that are whole, and OSDs that cannot be asked, do not end it.")
	}
	return lines
}
