package engine

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Suppose asks what the plan of a cluster would be if its view were another one, and changes nothing. It makes a view as an
// orchestration does, has change edit it, asks the storage system (a driver may ask more of it for the sake of what is
// supposed, such as whether it could do without a host), and plans. change may replace what stands in the view's
// lists, and may be nil. It may be called while the cluster is orchestrated. A storage system that does not answer leaves a
// note in View.Errors.
func (o *Orchestrator) Suppose(ctx context.Context, cluster types.NamespacedName, change func(*View)) (*View, *Plan, error) {
	r := run{
		Orchestrator: o, event: &RefreshEvent{Cluster: cluster}, started: time.Now(), log: o.Log.With("cluster", cluster.String()),
	}
	view, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		change(view)
		view.used, view.Supposed = nil, true
	}
	r.observe(ctx, view)
	if err := r.planFor(view); err != nil {
		return nil, nil, err
	}
	return view, r.plan, nil
}

// lookPause is between two questions of Look to a storage system that does not answer.
const lookPause = 200 * time.Millisecond

// Look asks the storage system for its state, for the sake of a view of what is supposed (View.Supposed), such as one of a
// cluster that does not exist yet. It may be called while the cluster is orchestrated. It asks again until the storage system
// answers, or until the time of patience has passed since Look first had its turn: the questions of others take none of it.
func (o *Orchestrator) Look(ctx context.Context, view *View, secrets SecretReader, patience time.Duration) (any, error) {
	var end time.Time
	for {
		system, began, err := o.lookOnce(ctx, view, secrets, patience)
		heard := *view
		heard.System = system
		if o.Driver.Unanswered(&heard) == "" || began.IsZero() {
			return system, err
		}
		if end.IsZero() {
			end = began.Add(patience)
		}
		pause := time.NewTimer(lookPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return system, err
		}
		if !time.Now().Before(end) {
			return system, err
		}
	}
}

// lookOnce asks once, and says when it had its turn: never, if the time is zero.
func (o *Orchestrator) lookOnce(ctx context.Context, view *View, secrets SecretReader, patience time.Duration) (any, time.Time, error) {
	within := min(o.observeTimeout(), patience)
	if view.Cluster.UID != "" {
		return o.ask(ctx, clusterKey(view.Cluster), view, secrets, within)
	}
	began := time.Now()
	system, err := o.answerOf(ctx, view, secrets, within)
	return system, began, err
}

// ask asks the storage system of a cluster for its state when no one else does, and says when it had its turn. The time of
// the question begins with the turn.
func (o *Orchestrator) ask(
	ctx context.Context, cluster types.NamespacedName, view *View, secrets SecretReader, within time.Duration,
) (any, time.Time, error) {
	give, err := o.remember(cluster).asking.take(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer give()
	began := time.Now()
	system, err := o.answerOf(ctx, view, secrets, within)
	return system, began, err
}

func (o *Orchestrator) answerOf(ctx context.Context, view *View, secrets SecretReader, within time.Duration) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return o.Driver.Observe(ctx, view, secrets)
}

// SetHostMode changes the mode of a host in the view alone.
func (v *View) SetHostMode(host string, mode api.HostMode) {
	for i := range v.Hosts {
		if v.Hosts[i].Name == host {
			v.Hosts[i].Spec.Mode = mode
		}
	}
}

// SetHostOff has all daemons of a host told to stop, and stopped, in the view alone: as its agent would say, were it not off with
// the machine. What a plan of that view still waits for is what the storage system itself has to know or to be told.
func (v *View) SetHostOff(host string) {
	v.Daemons = slices.Clone(v.Daemons)
	for i := range v.Daemons {
		if d := &v.Daemons[i]; d.Spec.Host == host && d.DeletionTimestamp == nil {
			d.Spec.State, d.Status.State, d.Status.ObservedGeneration = api.WantStopped, api.DaemonStopped, d.Generation
		}
	}
}
