package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// parallelWrites bounds how many writes of one run are under way at once. etcd puts writes that arrive together into one
// disk flush, so more at once cost less than one after the other.
const parallelWrites = 32

// apply carries out the plan. Things that do not depend on each other go in parallel; after an error what depends on the
// failed part is left for the next run.
func (r *run) apply(ctx context.Context) error {
	if err := r.takeBack(ctx); err != nil {
		return err
	}
	status := start(ctx, func(ctx context.Context) error {
		return r.Store.PutStatus(ctx, r.view.Cluster, r.plan.Status)
	})
	var back, first, second, last writes
	r.statusWrites(&back, &first)
	if !r.plan.Refused {
		r.planWrites(&first, &second, &last)
	}
	err := errors.Join(back.run(ctx), first.run(ctx))
	overtaken := r.overtaken(slices.Concat(back.stale, first.stale))
	if err == nil && !overtaken {
		err = second.run(ctx)
		overtaken = r.overtaken(second.stale)
	}
	r.placed()
	if err == nil && !overtaken && !r.plan.Refused {
		err = r.performThen(ctx, &last)
		r.overtaken(last.stale)
	}
	if e := status(); e != nil {
		err = errors.Join(err, fmt.Errorf("while writing the StorageStatus: %w", e))
	}
	return err
}

// statusWrites adds the writes of nodes and resources. Those that take back that one of them is stalled go first: somebody who has just
// applied what it lacked, and waits for both, sees no moment in which all is looked at and the word of the run before still stands.
func (r *run) statusWrites(back, first *writes) {
	namespace := r.view.Cluster.Namespace
	for _, change := range r.plan.Services {
		first.add("while writing the service of daemon "+change.Name, func(ctx context.Context) error {
			return r.Store.PutService(ctx, namespace, change)
		})
	}
	for _, change := range r.plan.Nodes {
		w := first
		if change.Seen = r.view.node(change.Name); change.Seen != nil && takesBack(change.Seen.Status.Conditions, change.Status.Conditions) {
			w = back
		}
		object := "node/" + change.Name
		w.addSeen("while writing the status of "+object, object, func(ctx context.Context) error { return r.Store.PutNodeStatus(ctx, namespace, change) })
	}
	for _, change := range r.plan.Resources {
		w := first
		change.Seen = r.view.resource(change.Object())
		if change.Seen != nil && takesBack(change.Seen.Common().Conditions, change.Resource.Common().Conditions) {
			w = back
		}
		w.addSeen("while writing the status of "+change.Object(), change.Object(), func(ctx context.Context) error { return r.Store.PutResource(ctx, change) })
	}
}

// takesBack says whether something was stalled, and is no more.
func takesBack(was, now []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(was, api.ConditionStalled) && !meta.IsStatusConditionTrue(now, api.ConditionStalled)
}

// overtaken says whether a node or resource changed, or a daemon was removed, while the cluster was looked at. What the plan makes of
// it, such as a daemon on the host that the node was moved away from, is not wanted any more: another run is asked for.
func (r *run) overtaken(stale []string) bool {
	for _, object := range slices.Sorted(slices.Values(stale)) {
		r.plan.Decisions = append(r.plan.Decisions, api.Decision{
			Object: object, Verdict: api.VerdictWait, Reason: api.ReasonSettling, Message: "the object changed during the " +
				"run; the next run uses the new version",
		})
	}
	if len(stale) == 0 {
		return false
	}
	r.plan.Recheck = time.Second
	return true
}

// takeBack writes that the cluster is not ready any more, or not refused any more, if that is so, before the nodes' statuses say that
// they were looked at. Who changed a node and waits for it would otherwise take the word of the run before for one on the node as it is.
func (r *run) takeBack(ctx context.Context) error {
	was, now := r.view.Cluster.Status.Conditions, r.conditions(nil)
	unready, accepted := isReady(was) && !isReady(now), isRefused(was) && !isRefused(now)
	if !r.newlySeen() || !unready && !accepted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := r.Store.PutClusterStatus(ctx, r.event.Cluster, func(s *api.StorageClusterStatus) {
		for _, c := range now {
			c.ObservedGeneration = s.ObservedGeneration
			c.LastTransitionTime = metav1.NewTime(r.started.Truncate(time.Second))
			meta.SetStatusCondition(&s.Conditions, c)
		}
		standCluster(s, r.started)
	})
	if err != nil {
		return fmt.Errorf("while clearing outdated conditions of the cluster: %w", err)
	}
	return nil
}

func isReady(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, api.ClusterReady)
}

// isRefused says whether the cluster is refused, or a node or host of it, and nothing but a change of a spec helps.
func isRefused(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, api.ClusterReady)
	return ready != nil && ready.Reason == ReasonRefused || meta.IsStatusConditionFalse(conditions, api.ClusterAccepted)
}

// newlySeen says whether the plan looks at the newest spec of a node or resource for the first time.
func (r *run) newlySeen() bool {
	node := func(change NodeStatus) bool {
		n := r.view.node(change.Name)
		return n != nil && n.Status.ObservedGeneration != change.Status.ObservedGeneration
	}
	resource := func(change ResourceChange) bool {
		was := r.view.resource(change.Object())
		return was != nil && !change.Gone && was.Common().ObservedGeneration != change.Resource.Common().ObservedGeneration
	}
	return slices.ContainsFunc(r.plan.Nodes, node) || slices.ContainsFunc(r.plan.Resources, resource)
}

// planWrites sorts the plan's writes: Secrets go first because daemons read them, and last what relies on the commands.
func (r *run) planWrites(first, second, last *writes) {
	for _, want := range r.plan.Secrets {
		if want.Gone {
			first.add("while removing secret "+want.Name, func(ctx context.Context) error {
				r.log.Info("removing a secret", "secret", want.Name)
				return r.Store.RemoveSecret(ctx, r.event.Cluster, want.Name)
			})
			continue
		}
		first.add("while making secret "+want.Name, func(ctx context.Context) error {
			r.log.Info("making a secret", "secret", want.Name)
			return r.Store.MakeSecret(ctx, r.view.Cluster, want, func() (map[string][]byte, error) { return r.Driver.MakeSecret(want) })
		})
	}
	for _, change := range r.plan.Daemons {
		writes := second
		if change.AfterCommands {
			writes = last
		}
		writes.addSeen("while writing daemon "+change.Daemon.Name, "daemon/"+change.Daemon.Name, func(ctx context.Context) error {
			r.log.Info("writing a daemon", "daemon", change.Daemon.Name, "host", change.Daemon.Spec.Host,
				"state", change.Daemon.Spec.State, "new", change.New, "reason", change.Reason)
			return r.Store.PutDaemon(ctx, r.view.Cluster, change)
		})
	}
	for _, removal := range r.plan.Remove {
		second.add("while removing daemon "+removal.Name, func(ctx context.Context) error {
			r.log.Info("removing a daemon", "daemon", removal.Name, "reason", removal.Reason)
			return r.Store.RemoveDaemon(ctx, r.view.Cluster.Namespace, removal.Name)
		})
	}
}

// start runs one write in the background. The function that it returns waits for its end.
func start(ctx context.Context, write func(context.Context) error) (wait func() error) {
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err = write(ctx)
	})
	return func() error {
		wg.Wait()
		return err
	}
}

// writes are writes that do not depend on each other.
type writes struct {
	what []string
	do   []func(context.Context) error

	mu sync.Mutex
	// stale are the objects that were not as they had been seen.
	stale []string
}

func (w *writes) add(what string, do func(context.Context) error) {
	w.what = append(w.what, what)
	w.do = append(w.do, do)
}

// addSeen adds a write that relies on an object being as it was seen.
func (w *writes) addSeen(what, object string, do func(context.Context) error) {
	w.add(what, func(ctx context.Context) error {
		err := do(ctx)
		if !errors.Is(err, ErrStale) {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stale = append(w.stale, object)
		return nil
	})
}

// run does all writes, also when some fail: one object that cannot be written does not hold up the others.
func (w *writes) run(ctx context.Context) error {
	errs := make([]error, len(w.do))
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for i, do := range w.do {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, storeTimeout)
			defer cancel()
			if err := do(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", w.what[i], err)
			}
			return nil
		})
	}
	_ = group.Wait() // The functions return no error; they leave it in errs.
	return errors.Join(errs...)
}
