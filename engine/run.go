package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

// run is one orchestration of one cluster.
type run struct {
	*Orchestrator
	event   *RefreshEvent
	memory  *memory
	started time.Time
	log     *slog.Logger

	view *View
	plan *Plan
	// system and silence are what the storage system said of itself, or that it did not.
	system  any
	silence []NodeError
	// placed lets other runs place daemons again. It may be called more than once.
	placed func()
	// performed counts the commands that were carried out, and failures says of those that were not what became of them.
	performed int
	failures  []error
}

// do runs the orchestration and reports on it. The report is written also when the run failed, but not when ctx has ended:
// the cluster belongs to another leader then.
func (r *run) do(ctx context.Context) error {
	defer func() { r.placed() }()
	err := r.look(ctx)
	if r.view == nil && errors.Is(err, ErrNotFound) {
		return err
	}
	if r.view != nil {
		emitted := r.tell(ctx)
		if err == nil {
			err = r.apply(ctx)
		}
		err = errors.Join(err, emitted())
	}
	if err == nil && r.plan.Finished {
		return r.finish(ctx)
	}
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err = errors.Join(err, r.report(ctx, err)); err == nil {
		r.event.Changed = !r.plan.Refused && (r.performed > 0 || r.plan.writes())
		r.event.Recheck = r.recheck()
	}
	return err
}

// look makes the view and the plan.
func (r *run) look(ctx context.Context) error {
	view, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.observe(ctx, view)
	if err := r.planFor(view); err != nil {
		return err
	}
	if hosts := r.plan.places(); len(hosts) > 0 {
		return r.lookAgain(ctx, hosts)
	}
	return nil
}

// lookAgain plans once more with no other run placing daemons on the hosts that this one places them on: two clusters that
// are planned at one moment, each without the daemons of the other, could take the same place, such as the port of a mon.
// With the other's daemons in sight, or nodes that came meanwhile, the plan may come to more hosts; then all that the cluster uses are
// taken, and it is planned anew.
func (r *run) lookAgain(ctx context.Context, hosts map[string]bool) error {
	for range placeRounds {
		r.view, r.plan = nil, nil
		give, err := r.sharedPlaces().take(ctx, hosts)
		if err != nil {
			return err
		}
		r.placed = give
		view, err := r.read(ctx)
		if err != nil {
			return err
		}
		if err := r.planFor(view); err != nil {
			return err
		}
		more := r.plan.places()
		if covers(hosts, more) {
			return nil
		}
		give()
		maps.Copy(hosts, more)
		maps.Copy(hosts, r.view.UsedHosts())
	}
	return fmt.Errorf("no plan of cluster %s: its choice of hosts changed in each of %d attempts",
		r.event.Cluster, placeRounds)
}

// placeRounds bounds how often a run plans anew because its plan comes to hosts that it has not taken.
const placeRounds = 5

func covers(taken, wanted map[string]bool) bool {
	for h := range wanted {
		if !taken[h] {
			return false
		}
	}
	return true
}

func (r *run) read(ctx context.Context) (*View, error) {
	view, err := r.Store.View(ctx, r.event.Cluster)
	if err != nil {
		return nil, fmt.Errorf("while reading cluster %s: %w", r.event.Cluster, err)
	}
	return view, nil
}

// planFor adds to a view what the storage system said, and plans.
func (r *run) planFor(view *View) (err error) {
	view.System, view.Errors = r.system, append(view.Errors, r.silence...)
	r.view = view
	if r.memory != nil { // Suppose has none
		view.Failures = r.memory.tries.failures()
	}
	if r.plan, err = r.makePlan(); err != nil {
		return err
	}
	unspoken(view, r.plan)
	if r.memory != nil {
		r.memory.outages.patient(view, r.plan, r.started)
	}
	putStandings(view, r.plan, r.started)
	if view.Cluster.ModeOf() == api.ClusterActive {
		awaitSilent(view, r.plan)
		awaitTwins(view, r.plan)
		awaitPlatform(view, r.plan)
	} else {
		r.plan = observed(view, r.plan)
	}
	r.plan.Services = serving.Changes(view.Daemons, r.plan.Said, r.started)
	serving.Worsen(&r.plan.Status, view.Daemons, r.started)
	r.plan.Status = Aggregate(view, r.plan, r.started)
	return nil
}

// observe asks the storage system for its state. That it does not answer is worth a note, and no reason to stop: most of
// what can be wrong with a cluster is mended by the rest of the run.
func (r *run) observe(ctx context.Context, view *View) {
	system, _, err := r.Look(ctx, view, r.Store.Secrets(r.event.Cluster), r.observeTimeout())
	r.system = system
	if err != nil {
		r.silence = []NodeError{{
			Object: "cluster/" + r.event.Cluster.Name, Message: fmt.Sprintf("observing %s failed: %v", r.Name(), err),
		}}
	}
}

// makePlan turns a panic of the driver into an error: a fault in the planning of one cluster must not stop the leader, which
// looks after all the others.
func (r *run) makePlan() (plan *Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic while planning", "panic", p, "stack", string(debug.Stack()))
			plan, err = nil, fmt.Errorf("planning failed: fault in the %s driver (see the log): %v", r.Name(), p)
		}
	}()
	return r.Driver.Plan(r.view, r.started), nil
}

// tell finds what differs from what was told before and writes events of it while the run goes on. The function that it returns
// waits until they are written. What could not be compared is told by a later run.
func (r *run) tell(ctx context.Context) (wait func() error) {
	before, err := r.before(ctx)
	if err != nil {
		return func() error { return fmt.Errorf("while reading the event journal of the cluster: %w", err) }
	}
	after := r.view.after(r.plan)
	if r.memory.view == nil {
		r.memory.unsent = append(r.memory.unsent, r.memory.leaderEvents(r.started)...)
	}
	differences := r.memory.flaps.damp(Diff(before, after, r.started), r.started)
	r.memory.unsent = append(r.memory.unsent, fold(r.event.Cluster.Name, differences)...)
	r.memory.view = after
	return start(ctx, r.emit)
}

// emit hands the events that are not sent yet to the store, together with what is told by them.
func (r *run) emit(ctx context.Context) error {
	var changes map[string]*string
	entries := r.memory.entries()
	if len(r.memory.unsent) > 0 || entries != r.memory.entriesTold {
		changes = r.memory.told.changes(r.memory)
	}
	n, err := r.Store.Emit(ctx, r.view.Cluster, r.memory.unsent, changes)
	r.memory.unsent = slices.Delete(r.memory.unsent, 0, n)
	r.event.Events += n
	if len(r.memory.unsent) == 0 && (n > 0 || err == nil) {
		r.memory.told.Apply(changes)
		r.memory.entriesTold = entries
	}
	if err != nil {
		return fmt.Errorf("while writing events: %w", err)
	}
	return nil
}

// finish lets go of a deleted cluster of which nothing is left.
func (r *run) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.Store.Finish(ctx, r.view.Cluster); err != nil {
		err = fmt.Errorf("while releasing the cluster: %w", err)
		return errors.Join(err, r.report(ctx, err))
	}
	r.log.Info("cluster is gone")
	return fmt.Errorf("cluster %s was deleted: %w", r.event.Cluster, ErrNotFound)
}

// after returns the view as it will be when the statuses that the plan asks for are written, so that differences in them are
// told at once, not in the next run.
func (v *View) after(p *Plan) *View {
	if p == nil {
		return v
	}
	next := *v
	next.Status = &api.StorageStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Cluster.Namespace, Name: v.Cluster.Name}, Status: p.Status,
	}
	next.Resources = v.resourcesAfter(p)
	if len(p.Nodes) == 0 {
		return &next
	}
	next.Nodes, next.used = slices.Clone(v.Nodes), nil
	for _, change := range p.Nodes {
		for i := range next.Nodes {
			if next.Nodes[i].Name == change.Name {
				next.Nodes[i].Status = change.Status
			}
		}
	}
	return &next
}
