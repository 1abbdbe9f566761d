package store_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// TestEngine brings a toy cluster up on the real API server, looks whether anything is written when
// nothing is to be done, and deletes the cluster.
func TestEngine(t *testing.T) {
	w, s, toy := newWorld(t), newStore(t, "s1"), sim.NewToy()
	toy.As = api.StorageCeph
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = engine.Run(ctx, engine.Config{Store: s, Log: log, Managers: []engine.ServiceManager{
			&engine.Orchestrator{Store: s, Driver: toy, Leader: "s1", Log: log},
		}})
	})
	running.Go(func() { agents(ctx, w, toy) })
	defer running.Wait()
	defer cancel()

	c := newCluster("live")
	declare(t, w, c)
	started := time.Now()
	eventually(t, "the cluster is ready", func() bool {
		must(t, w.Get(t.Context(), c))
		return meta.IsStatusConditionTrue(c.Status.Conditions, api.ClusterReady)
	})
	t.Logf("ready after %s", time.Since(started))
	eventually(t, "the cluster is at rest", func() bool {
		must(t, w.Get(t.Context(), c))
		return c.Status.Report.Outcome == api.OutcomeUnchanged
	})

	w.pass(t, c, time.Second) // The run that came to rest has then emitted its events, too.
	before := w.versions(t, c.Name)
	w.pass(t, c, 3*time.Second)
	if diff := cmp.Diff(before, w.versions(t, c.Name)); diff != "" {
		t.Errorf("written while nothing was to be done:\n%s", diff)
	}

	must(t, w.Delete(t.Context(), c))
	eventually(t, "the cluster is gone", func() bool { return apierrors.IsNotFound(w.Get(t.Context(), c)) })
	if left := slices.Sorted(maps.Keys(w.versions(t, c.Name))); !slices.Equal(left, []string{"secret/live-key"}) {
		t.Errorf("left behind: %v, want the key alone", left)
	}
}

// declare makes three hosts with a disk each, the cluster and its nodes.
func declare(t *testing.T, w world, c *api.StorageCluster) {
	t.Helper()
	must(t, w.Create(t.Context(), c))
	for _, n := range []string{"1", "2", "3"} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "live-h" + n, Labels: map[string]string{api.LabelHostname: "live-h" + n}}}
		must(t, w.Create(t.Context(), h))
		h.Status = api.HostStatus{BootID: "b", Addresses: []string{"10.0.0." + n}, Devices: []api.Device{sim.Disk("live-d"+n, "/dev/sdb")}}
		must(t, w.UpdateStatus(t.Context(), h))
		must(t, w.Create(t.Context(), &api.StorageNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "live-n" + n},
			Spec: api.StorageNodeSpec{
				Type: api.StorageCeph, Cluster: c.Name, Devices: []string{"/dev/sdb"},
				NodeSelector: map[string]string{api.LabelHostname: "live-h" + n},
			},
		}))
	}
}

// agents does what the agents of all hosts do, and lets the toy see which daemons run.
func agents(ctx context.Context, w world, toy *sim.Toy) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		var daemons api.DaemonList
		if w.List(ctx, &daemons, client.MatchingLabels{api.LabelCluster: "live"}) == nil {
			var running []api.Daemon
			for i := range daemons.Items {
				d := &daemons.Items[i]
				if d.DeletionTimestamp != nil {
					d.Finalizers = nil
					_ = w.Update(ctx, d) // A conflict is tried again by the next round.
					continue
				}
				want := map[api.WantedState]api.DaemonState{api.WantPrepared: api.DaemonPrepared, api.WantRunning: api.DaemonRunning}[d.Spec.State]
				if d.Status.State == want && want == api.DaemonRunning {
					running = append(running, *d)
				}
				if d.Status.State != want {
					d.Status.State = want
					_ = w.UpdateStatus(ctx, d)
				}
			}
			toy.Step(time.Now(), running)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// pass waits until the next orchestration of the cluster is that much later than it is now.
func (w world) pass(t *testing.T, c *api.StorageCluster, d time.Duration) {
	t.Helper()
	next := c.Status.NextOrchestration
	eventually(t, "an interval passes", func() bool {
		must(t, w.Get(t.Context(), c))
		return c.Status.NextOrchestration.Sub(next.Time) >= d
	})
}

// versions are the versions of everything that belongs to a cluster but the StorageCluster itself,
// whose expected next orchestration is written once in each interval.
func (w world) versions(t *testing.T, cluster string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"daemon": &api.DaemonList{}, "status": &api.StorageStatusList{}, "secret": &corev1.SecretList{}, "event": &api.ClusterEventList{},
	} {
		must(t, w.List(t.Context(), list, client.MatchingLabels{api.LabelCluster: cluster}))
		items, err := meta.ExtractList(list)
		must(t, err)
		for _, item := range items {
			o := item.(client.Object)
			versions[kind+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return versions
}
