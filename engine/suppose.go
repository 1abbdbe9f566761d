package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Suppose asks what the plan of a cluster would be if its view were another one, and changes nothing. It makes a view as an
// orchestration does, storage system included, has change edit it, and plans. change may replace what stands in the view's
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
	r.observe(ctx, view)
	if change != nil {
		change(view)
	}
	if err := r.planFor(view); err != nil {
		return nil, nil, err
	}
	return view, r.plan, nil
}

// SetHostMode changes the mode of a host in the view alone.
func (v *View) SetHostMode(host string, mode api.HostMode) {
	for i := range v.Hosts {
		if v.Hosts[i].Name == host {
			v.Hosts[i].Spec.Mode = mode
		}
	}
}
