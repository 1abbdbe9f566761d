package ceph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// Foresee is the plan that the cluster would have if all its daemons were handed over at now. It asks the cluster, and changes nothing.
// The error wraps rados.ErrNoAnswer where Ceph did not answer in time.
func (x *Adoption) Foresee(ctx context.Context, d *Driver, hosts []api.Host, others []*api.Daemon,
	now time.Time,
) (*engine.Plan, error) {
	view := &engine.View{Cluster: x.Cluster.DeepCopy(), Nodes: x.Nodes, Hosts: hosts}
	view.Cluster.Generation, view.Cluster.UID = 1, types.UID("adopted")
	byName := view.HostsByName()
	for i := range x.Daemons {
		next := *x.Daemons[i].DeepCopy()
		started := metav1.NewMicroTime(now.Add(-time.Hour))
		next.Generation, next.Spec.State = 1, api.WantRunning
		next.Status = api.DaemonStatus{State: api.DaemonRunning, ObservedGeneration: 1, PID: 1, Started: &started}
		next.Status.Version = byName[next.Spec.Host].Status.Release(next.Spec.Type)
		view.Daemons = append(view.Daemons, next)
	}
	for _, s := range x.Secrets {
		view.Secrets = append(view.Secrets, engine.SecretInfo{Name: s.Name, Annotations: s.Annotations, Keys: slices.Sorted(maps.Keys(s.Data))})
	}
	view.AddNeighbours(x.Nodes, func(map[string]bool) []*api.Daemon { return others }, []api.StorageCluster{*view.Cluster})
	seen, err := d.Observe(ctx, view, x)
	if err != nil {
		return nil, fmt.Errorf("while planning for the time after the hand-over: %w", err)
	}
	// A plan without Ceph's answers lacks what stands in the way of the adoption.
	if o, ok := seen.(*Observation); !ok || !o.Reachable {
		return nil, fmt.Errorf("%w: Ceph did not answer while planning for the time after the hand-over: "+
			"run the command again", rados.ErrNoAnswer)
	}
	view.System = seen
	return d.Plan(view, now), nil
}

// Secret makes an Adoption an engine.SecretReader.
func (x *Adoption) Secret(_ context.Context, name string) (map[string][]byte, error) {
	for _, s := range x.Secrets {
		if s.Name == name {
			return s.Data, nil
		}
	}
	return nil, fmt.Errorf("secret %s: %w", name, engine.ErrNotFound)
}

// Tell adds what the plan would do, and would refuse. What takes data or daemons away stands in the way of the adoption.
func (x *Adoption) Tell(plan *engine.Plan) {
	for _, d := range plan.Decisions {
		if d.Verdict == api.VerdictRefuse {
			x.Problems = append(x.Problems, fmt.Sprintf("after the hand-over %s would be refused: %s", d.Object, d.Message))
		}
		if d.Verdict == api.VerdictDo {
			x.Notes = append(x.Notes, fmt.Sprintf("after the hand-over: %s: %s", d.Object, d.Message))
		}
	}
	for _, r := range plan.Remove {
		x.Problems = append(x.Problems, fmt.Sprintf("after the hand-over daemon/%s would be removed: %s", r.Name, r.Reason))
	}
}
