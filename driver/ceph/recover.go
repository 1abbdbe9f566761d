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
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
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
	Store  Store
	Driver *Driver
}

// Store is what the actions of this package read and write. An engine.Store is one.
type Store interface {
	engine.ClusterReader
	engine.DaemonStore
	// Secrets is that of engine.SecretStore.
	Secrets(cluster types.NamespacedName) engine.SecretReader
}

var _ action.Handler = Recoverer{}

// Kind implements action.Handler.
func (Recoverer) Kind() action.Kind {
	return action.Kind{
		Name: RecoverKind, Executor: api.ByLeader, Mode: action.Exclusive, Timeout: 12 * time.Hour, ExpiresAfter: time.Hour,
		Steps:   []string{recoverStop, recoverLook, recoverRebuild, recoverFound, recoverKeys, recoverServe},
		Summary: "recover the mons of a Ceph cluster whose quorum is lost for good (see 'holdfast ceph recover-mons')",
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
		return refusef("cannot recover: spec.mode of storagecluster/%s is %s; set it to Active", c.Name, c.ModeOf())
	case slices.ContainsFunc(r.view.Daemons, isWatched):
		return refusef("cannot recover the mons of storagecluster/%s: its daemons are not handed over, so Holdfast "+
			"cannot stop the old mons, and they could form a second quorum; use Ceph's tools ('ceph-mon --extract-monmap', "+
			"'monmaptool', 'ceph-mon --inject-monmap')", c.Name)
	case len(r.of(TypeMon)) == 0 && len(r.of(TypeOSD)) == 0:
		return refusef("cannot recover storagecluster/%s: none of its mons and OSDs can be reached", c.Name)
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
			return refusef("host %s is not lost: its agent is connected; remove it from --lost", d.Spec.Host)
		case !h.AgentHeard() && !slices.Contains(r.lost, d.Spec.Host) && !slices.Contains(missing, d.Spec.Host):
			missing = append(missing, d.Spec.Host)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refusef("cannot recover yet: the agents of %s are disconnected, and their mon stores may be newer; start "+
		"these hosts. If they are gone for good, use --lost %s: changes that only they hold are lost",
		strings.Join(missing, ", "), strings.Join(missing, ","))
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
		return nil, refusef("StorageCluster %s does not exist in namespace %s", a.Spec.Cluster, a.Namespace)
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
		return notLost(r.view, o.Quorum)
	}
	return nil
}

func notLost(view *engine.View, quorum []string) error {
	return refusef("the mons answer: %s form a quorum, so nothing is lost; Holdfast replaces missing "+
		"mons: see 'holdfast why cluster/%s'", strings.Join(quorum, ", "), view.Cluster.Name)
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
	p.members = monset.Of(p.view.Daemons)
	p.decide(api.VerdictWait, api.ReasonActionActs, "cluster/"+p.cluster.Name,
		"action/%s recovers its mons; the plan leaves its daemons alone until it ends", a.Name)
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

// Words describe a recovery before it begins: what will be done, and what is lost. It refuses while
// the mons answer.
func Words(view *engine.View, spec api.ActionSpec) ([]string, error) {
	r, err := newRecovery(view, spec)
	if err != nil {
		return nil, err
	}
	if quorum := monset.Quorum(view.Cluster, view.Status); len(quorum) > 0 {
		return nil, notLost(view, quorum)
	}
	return r.words(), nil
}

func (r *recovery) words() []string {
	var mons []string
	for _, d := range r.of(TypeMon) {
		mons = append(mons, label(d)+" on host "+d.Spec.Host)
	}
	have := "none of its mons is reachable"
	if len(mons) > 0 {
		have = "reachable mons: " + strings.Join(mons, ", ")
	}
	lines := []string{fmt.Sprintf("storagecluster/%s (fsid %s): %s", r.view.Cluster.Name, clusterFSID(r.view), have)}
	if len(r.lost) > 0 {
		lines = append(lines, "lost for good: "+strings.Join(r.lost, ", "))
	}
	if r.way == monstore.Alone {
		lines = append(lines,
			"1. Stop these mons. OSDs and mgrs keep running.",
			"2. Compare their stores. If the whole ones are a quorum, end here and change nothing.",
			"3. In the newest store, remove the others from the map. Keep a copy of the store.",
			"4. Start that mon alone. Remove the other mons; keep their stores in other directories.",
			"5. Add new mons, one at a time, up to spec.ceph.mon.count.",
			"LOST: data that only the other mons had, mostly of the last moments.")
	} else {
		lines = append(lines,
			fmt.Sprintf("1. Stop all reachable daemons: %d mons, %d OSDs, %d mgrs. Clients cannot read or write until step 6.",
				len(mons), len(r.osds()), len(r.of(TypeMgr))),
			"2. Check the stores. If the store of a mon is whole, end here and change nothing.",
			"3. On the host of the OSD with the newest map, build the store of a mon from the maps of its OSDs and the keys "+
				"in the Secrets.",
			"4. Start that mon alone. Remove the other mons; keep their stores in other directories.",
			"5. Import the keys of OSDs, mgrs and Clients from the Secrets.",
			"6. Start OSDs and mgrs. Add new mons, one at a time, up to spec.ceph.mon.count.",
			"LOST: settings of 'ceph config set', keys that are in no Client or Secret, pools in creation, and the maps of "+
				"CephFS file systems",
			"      (their data stays: 'ceph fs new NAME METADATA-POOL DATA-POOL --fscid ID --force --recover', then 'ceph fs set NAME joinable true').")
	}
	if r.force {
		lines = append(lines, "FORCED: whole stores, and OSDs that do not answer, do not end it.")
	}
	return lines
}
