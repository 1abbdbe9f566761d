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

// Look asks the storage system for its state when no one else does, and returns when the time of the
// question began, or zero. The view may be of what is supposed.
func (o *Orchestrator) Look(ctx context.Context, v *View, s SecretReader, most time.Duration) (any, time.Time, error) {
	if v.Cluster.UID != "" {
		give, err := o.remember(clusterKey(v.Cluster)).asking.Take(ctx)
		if err != nil {
			return nil, time.Time{}, err
		}
		defer give()
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	system, err := o.Driver.Observe(ctx, v, s)
	return system, began, err
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
