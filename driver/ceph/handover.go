package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// HandOverKind is the kind of Actions that hand the daemons of an adopted cluster over to Holdfast: one after the other is ended where it runs,
// and started again by its agent on the same data. Such an Action lies in the namespace of its cluster; its target is "storagecluster/<name>".
const HandOverKind = "ceph.hand-over"

// HandOverHosts is the parameter of an Action of HandOverKind with the hosts that it is limited to, joined by commas; all without it.
const HandOverHosts = "hosts"

// handOverSteps are the steps, with the type of daemon that each hands over. Mons go first, as in an upgrade.
var handOverSteps = []struct{ name, daemonType string }{{"mons", TypeMon}, {"mgrs", TypeMgr}, {"osds", TypeOSD}}

// HandOver carries out Actions of HandOverKind. What was handed over stands in the Daemons, so that any leader goes on from there.
type HandOver struct {
	Store  Store
	Driver *Driver
}

var _ action.Handler = HandOver{}

// Kind implements action.Handler.
func (HandOver) Kind() action.Kind {
	k := action.Kind{
		Name: HandOverKind, Executor: api.ByLeader, Mode: action.Exclusive, Timeout: 24 * time.Hour, ExpiresAfter: time.Hour,
		Summary: "hand over the daemons of an adopted Ceph cluster to Holdfast, one at a time (see 'holdfast ceph adopt')",
	}
	for _, s := range handOverSteps {
		k.Steps = append(k.Steps, s.name)
	}
	return k
}

// handOver is an Action of HandOverKind with its cluster as it is now.
type handOver struct {
	HandOver
	view  *engine.View
	hosts []string // all when empty
	// running are the releases that mons and managers run, by their names.
	running map[string]string
}

func (x HandOver) open(ctx context.Context, a *api.Action) (*handOver, error) {
	view, err := x.Store.View(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
	if errors.Is(err, engine.ErrNotFound) {
		return nil, refusef("StorageCluster %s does not exist in namespace %s", a.Spec.Cluster, a.Namespace)
	}
	if err != nil {
		return nil, err
	}
	h := newHandOver(view, a.Spec)
	h.HandOver = x
	return h, h.refusal()
}

func newHandOver(view *engine.View, spec api.ActionSpec) *handOver {
	h := &handOver{view: view}
	if list := string(spec.Parameters[HandOverHosts]); list != "" {
		h.hosts = strings.Split(list, ",")
	}
	return h
}

// refusal says what is wrong with a hand-over as far as the view tells.
func (h *handOver) refusal() error {
	c := h.view.Cluster
	hosts := h.view.HostsByName()
	switch {
	case c.Annotations[AnnotationAdopted] == "":
		return refusef("nothing to hand over: storagecluster/%s was not adopted", c.Name)
	case c.DeletionTimestamp != nil:
		return refusef("storagecluster/%s is being deleted", c.Name)
	case c.ModeOf() != api.ClusterActive:
		return refusef("cannot hand over: spec.mode of storagecluster/%s is %s; set it to Active", c.Name, c.ModeOf())
	}
	for _, name := range h.hosts {
		if !slices.ContainsFunc(h.view.Daemons, func(d api.Daemon) bool { return d.Spec.Host == name }) {
			return refusef("storagecluster/%s has no daemon on host %s", c.Name, name)
		}
	}
	for i := range h.view.Daemons {
		d := &h.view.Daemons[i]
		switch host := hosts[d.Spec.Host]; {
		case !h.means(d) || !isWatched(*d):
		case host == nil || !host.AgentHeard():
			return refusef("the agent of host %s is disconnected: start it", d.Spec.Host)
		case host.ModeOf() != api.HostActive:
			return refusef("host %s is in mode %s: return it to service first", d.Spec.Host, host.ModeOf())
		}
	}
	return nil
}

// means says whether a daemon is on one of the hosts that it is about.
func (h *handOver) means(d *api.Daemon) bool {
	return len(h.hosts) == 0 || slices.Contains(h.hosts, d.Spec.Host)
}

// Check implements action.Handler.
func (x HandOver) Check(ctx context.Context, a *api.Action) error {
	h, err := x.open(ctx, a)
	if err != nil {
		return err
	}
	o, err := h.observe(ctx)
	if err != nil {
		return err
	}
	if strangers := h.strangers(o); len(strangers) > 0 {
		return refusef("Ceph has daemons that were not adopted: %s; run 'holdfast ceph adopt %s' again",
			words.Few(strangers), h.view.Cluster.Name)
	}
	return h.releasesFit()
}

// observe asks the cluster for its state, and for the releases of its mons and managers.
func (h *handOver) observe(ctx context.Context) (*Observation, error) {
	key := types.NamespacedName{Namespace: h.view.Cluster.Namespace, Name: h.view.Cluster.Name}
	seen, err := h.Driver.Observe(ctx, h.view, h.Store.Secrets(key))
	if err != nil {
		return nil, err
	}
	o, ok := seen.(*Observation)
	switch {
	case !ok || !o.Reachable:
		return nil, errors.New("the mons do not answer")
	case o.FSID != clusterFSID(h.view):
		return nil, refusef("the mons answer for another cluster (fsid %s instead of %s)", o.FSID, clusterFSID(h.view))
	}
	c, err := h.answersNow(ctx)
	if err != nil {
		return nil, err
	}
	h.running, err = c.releases(ctx)
	return o, err
}

// strangers are the daemons in Ceph's maps that Holdfast does not know, and those that are other ones than it knows.
func (h *handOver) strangers(o *Observation) []string {
	known := map[string]string{}
	for i := range h.view.Daemons {
		d := &h.view.Daemons[i]
		known[label(d)] = d.Spec.Parameters[ParamOSDUUID]
	}
	var names []string
	for _, id := range o.Monmap {
		if _, ok := known["mon."+id]; !ok {
			names = append(names, "mon."+id)
		}
	}
	for id, osd := range o.OSDs {
		name := "osd." + strconv.Itoa(id)
		if uuid, ok := known[name]; !ok || !strings.EqualFold(uuid, osd.UUID) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Step implements action.Handler: it hands one daemon over at a time, and waits until all is well before the next.
func (x HandOver) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	h, err := x.open(ctx, a)
	if h == nil {
		return action.Progress{}, err
	}
	if err != nil {
		return action.Progress{}, fmt.Errorf("waiting: %s", strings.TrimPrefix(err.Error(), action.ErrRefused.Error()+": "))
	}
	i := slices.Index(HandOver{}.Kind().Steps, step)
	if i < 0 {
		return action.Progress{}, refusef("this version of holdfast knows no step %s of %s", step, HandOverKind)
	}
	o, err := h.observe(ctx)
	if err != nil {
		return action.Progress{}, err
	}
	return h.next(ctx, o, handOverSteps[i].daemonType)
}

// next waits for the daemons that were handed over, and hands over the next one.
func (h *handOver) next(ctx context.Context, o *Observation, daemonType string) (action.Progress, error) {
	daemons := h.inTurn(o, daemonType)
	p := action.Progress{Total: int64(len(daemons)), Unit: "daemons", Recheck: time.Second / 4}
	var waiting *api.Daemon
	for _, d := range daemons {
		if isWatched(*d) {
			if waiting == nil {
				waiting = d
			}
			continue
		}
		p.Count++
		if why := h.unwell(o, d); why != "" {
			p.Message, p.WaitsFor = fmt.Sprintf("%s on host %s is handed over", label(d), d.Spec.Host), why
			return p, nil
		}
	}
	if waiting == nil {
		p.Done, p.Message = true, fmt.Sprintf("%s of %s handed over", words.Plural(len(daemons), "daemon"), kindOf(daemonType))
		return p, nil
	}
	p.Message = fmt.Sprintf("%s on host %s is next", label(waiting), waiting.Spec.Host)
	if why := h.notYet(ctx, o, waiting); why != "" {
		p.WaitsFor = why
		return p, nil
	}
	if err := h.stillWatched(ctx, waiting); err != nil {
		return p, err
	}
	next := *waiting.DeepCopy()
	next.Spec.State = api.WantRunning
	keepPlace(&next)
	err := h.Store.PutDaemon(ctx, h.view.Cluster, engine.DaemonChange{Daemon: next, Reason: "handed over to Holdfast"})
	if err != nil {
		return p, fmt.Errorf("while handing over %s: %w", label(waiting), err)
	}
	p.WaitsFor = "Holdfast to start " + label(waiting)
	return p, nil
}

// stillWatched looks once more before a daemon is changed: to ask Ceph takes seconds, in which somebody may have deleted it or the cluster. A Daemon
// that is gone would be made again, and take its process with it when it goes.
func (h *handOver) stillWatched(ctx context.Context, d *api.Daemon) error {
	view, err := h.Store.View(ctx, types.NamespacedName{Namespace: h.view.Cluster.Namespace, Name: h.view.Cluster.Name})
	if err != nil {
		return err
	}
	now := view.DaemonsByName()[d.Name]
	if c := view.Cluster; c.DeletionTimestamp != nil || c.ModeOf() != api.ClusterActive || now == nil || now.UID != d.UID || now.DeletionTimestamp != nil || !isWatched(*now) {
		return fmt.Errorf("%s or its cluster has just changed: retrying", label(d))
	}
	return nil
}

// inTurn are the daemons of a type that it is about, in the order in which they are handed over: the active manager last.
func (h *handOver) inTurn(o *Observation, daemonType string) []*api.Daemon {
	var all, last []*api.Daemon
	for i := range h.view.Daemons {
		d := &h.view.Daemons[i]
		switch {
		case d.Spec.Type != daemonType || d.DeletionTimestamp != nil || !h.means(d):
		case daemonType == TypeMgr && d.Spec.ID == o.ActiveMgr:
			last = append(last, d)
		default:
			all = append(all, d)
		}
	}
	return append(all, last...)
}

// settled is how long a daemon that was handed over runs before it is believed: what Ceph says of it may be of a moment before, and one that
// cannot run ends soon.
const settled = 2 * time.Second

// unwell says what is waited for of a daemon that was handed over; nothing when it serves.
func (h *handOver) unwell(o *Observation, d *api.Daemon) string {
	id, _ := strconv.Atoi(d.Spec.ID)
	switch {
	case d.Status.ObservedGeneration != d.Generation:
		return fmt.Sprintf("the agent of host %s to take over %s", d.Spec.Host, label(d))
	case d.Status.State != api.DaemonRunning:
		text := fmt.Sprintf("%s on host %s: %s%s", label(d), d.Spec.Host, d.Status.State, words.Colon(d.Status.Message))
		if d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonBackOff {
			text += "; to go back: " + wayBack(d)
		}
		return text
	case d.Status.Started == nil || time.Since(d.Status.Started.Time) < settled: //nolint:forbidigo // an action, and no plan
		return fmt.Sprintf("%s to run for %v", label(d), settled)
	case d.Spec.Type == TypeMon && !slices.Contains(o.Quorum, d.Spec.ID):
		return label(d) + " to be in the quorum"
	case d.Spec.Type == TypeOSD && !o.OSDs[id].Up:
		return label(d) + " to be up"
	case d.Spec.Type == TypeMgr && !o.MgrAvailable:
		return "a manager to be active"
	}
	return ""
}

// wayBack says how a person starts a daemon as it was before.
func wayBack(d *api.Daemon) string {
	return fmt.Sprintf("end the hand-over with 'holdfast action cancel', then start %s by its old unit "+
		"(docs/how-to/adopt.md)", label(d))
}

// notYet says why a daemon may not stop now; nothing when it may. A single mon or manager has nobody to wait for.
func (h *handOver) notYet(ctx context.Context, o *Observation, d *api.Daemon) string {
	mgrs := o.Standbys
	if o.ActiveMgr != "" {
		mgrs++
	}
	wantMgrs := h.count(TypeMgr)
	switch {
	case d.Status.State != api.DaemonRunning:
		return fmt.Sprintf("the agent of host %s to report %s as running: %s%s",
			d.Spec.Host, label(d), d.Status.State, words.Colon(d.Status.Message))
	case len(o.Quorum) < len(o.Monmap):
		return fmt.Sprintf("all %d mons to be in the quorum: %s are", len(o.Monmap), strings.Join(o.Quorum, ", "))
	case !o.MgrAvailable || mgrs < wantMgrs:
		return fmt.Sprintf("all %d managers to run", wantMgrs)
	case o.PGs < o.PGsWanted || o.PGsClean < o.PGs || o.PGsOld:
		return fmt.Sprintf("all placement groups to be active+clean: %d of %d are", o.PGsClean, max(o.PGs, o.PGsWanted))
	}
	if why := h.outOfOrder(d); why != "" || d.Spec.Type != TypeOSD {
		return why
	}
	id, _ := strconv.Atoi(d.Spec.ID)
	c, err := h.answersNow(ctx)
	if err != nil {
		return err.Error()
	}
	if a := c.okToStop(ctx, o, []int{id}); !a.OK {
		return fmt.Sprintf("Ceph to let %s stop: %s", label(d), a.Reason)
	}
	return ""
}

func (h *handOver) answersNow(ctx context.Context) (*conn, error) {
	key := types.NamespacedName{Namespace: h.view.Cluster.Namespace, Name: h.view.Cluster.Name}
	return h.Driver.connect(ctx, h.view, h.Store.Secrets(key))
}

func (h *handOver) count(daemonType string) (n int) {
	for i := range h.view.Daemons {
		if h.view.Daemons[i].Spec.Type == daemonType {
			n++
		}
	}
	return n
}

// Undo implements action.Handler. What was handed over stays so, and what was not is watched as before: both serve.
func (x HandOver) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true, Message: "daemons that were handed over stay with Holdfast; the others are " +
		"watched as before"}, nil
}

// HandOverWords tells a hand-over before it is begun. Running are the releases that mons and managers run (see Driver.Releases), or nil where nobody
// could be asked.
func HandOverWords(view *engine.View, spec api.ActionSpec, running map[string]string) ([]string, error) {
	h := newHandOver(view, spec)
	h.running = running
	if err := h.refusal(); err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range handOverSteps {
		for _, d := range h.inTurn(&Observation{}, s.daemonType) {
			if isWatched(*d) {
				lines = append(lines, fmt.Sprintf("%d. %s on host %s (process %d, %s)", len(lines)+1, label(d), d.Spec.Host, d.Status.PID, d.Status.Message))
			}
		}
	}
	if len(lines) == 0 {
		return nil, refusef("all daemons are handed over")
	}
	if err := h.releasesFit(); err != nil {
		return nil, err
	}
	lines = append([]string{fmt.Sprintf("storagecluster/%s (fsid %s): Holdfast stops these daemons one at a time and "+
		"starts them again on the same data:", view.Cluster.Name, clusterFSID(view))}, lines...)
	if h.count(TypeMon) == 1 {
		lines = append(lines, "There is only one mon: clients wait for some seconds while it restarts.")
	}
	if h.count(TypeMgr) == 1 {
		lines = append(lines, "There is only one manager: Ceph reports nothing for some seconds while it restarts.")
	}
	return append(lines, "Before each daemon Holdfast waits until all mons are in the quorum, all placement groups "+
		"are active+clean, and Ceph lets the daemon stop. Afterwards it disables the units of Ceph's packages and keeps "+
		"the cluster as its spec says."), nil
}
