package leader_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/leader"
)

// store is a simulated world as a platform gives it to the leader. The first to write an NFS server
// gives all others the time to do what they can.
type store struct {
	*sim.Memory
	written atomic.Bool
}

func (s *store) PutDaemon(ctx context.Context, cluster *api.StorageCluster, change engine.DaemonChange) error {
	if change.Daemon.Spec.Type == ganesha.Type && s.written.CompareAndSwap(false, true) {
		synctest.Wait()
	}
	return s.Memory.PutDaemon(ctx, cluster, change)
}

func (s *store) WatchAgents(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return nil }

func (s *store) ClearPlans(ctx context.Context) error { <-ctx.Done(); return nil }

func (s *store) ReportAges() []time.Duration { return nil }

func (s *store) SilentAgents() int { return 0 }

func (s *store) ActionStates() map[api.ActionState]int { return nil }

// exporter is a storage system of which all that is planned is the NFS server, as the drivers of
// Ceph and GlusterFS plan theirs: on the first host that has none of another cluster.
type exporter struct{ *sim.Toy }

func (exporter) Plan(view *engine.View, now time.Time) *engine.Plan {
	var able []nfs.Place
	for _, h := range view.Hosts {
		able = append(able, nfs.Place{Node: h.Name, Host: h.Name, Address: "10.0.0.1"})
	}
	storage := nfs.Storage{
		FSAL:   "vfs",
		Cannot: func(*api.NFSExport) (string, string) { return "", "" },
		Lines:  func(*api.NFSExport, nfs.Place) []string { return nil },
		State:  func(*api.NFSExport) api.ResourceStatus { return api.ResourceStatus{} },
	}
	plan := &engine.Plan{}
	nfs.Choose(view, storage, able, nil, now).Plan(plan)
	return plan
}

// TestRun_placesAcrossDrivers: a Ceph and a GlusterFS cluster that choose a host for NFS at one
// moment choose two hosts: NFS-Ganesha listens on port 2049 of all addresses of its host, so that
// one host can have one alone.
func TestRun_placesAcrossDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var drivers []engine.Driver
		for _, kind := range []api.StorageType{api.StorageCeph, api.StorageGlusterFS} {
			toy := sim.NewToy()
			toy.As = kind
			drivers = append(drivers, exporter{toy})
			declare(t, w, kind)
		}
		for _, host := range []string{"h1", "h2"} {
			must(w.AddHost(t.Context(), host, nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s := &store{Memory: w.Memory}
		go func() {
			ended <- leader.Run(ctx, leader.Config{
				Store: s, Actions: actiontest.NewMemory(), Drivers: drivers, Name: "s1", Log: slog.New(slog.DiscardHandler),
			})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		must(<-ended)
		all, on := 0, map[string]int{}
		for _, host := range []string{"h1", "h2"} {
			view, err := w.Host(t.Context(), host)
			must(err)
			all, on[host] = all+len(view.Daemons), len(view.Daemons)
		}
		if all != 2 || on["h1"] != 1 {
			t.Errorf("NFS servers by host: %v, want one on each", on)
		}
		if !s.written.Load() {
			t.Error("nobody wrote an NFS server")
		}
	})
}

// declare declares a cluster on h1 and h2 with an export.
func declare(t *testing.T, w *sim.World, kind api.StorageType) {
	t.Helper()
	name := string(kind)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	objects := []sim.Object{
		&api.StorageCluster{ObjectMeta: meta(name), Spec: api.StorageClusterSpec{
			Type: kind, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain,
		}},
		&api.NFSExport{ObjectMeta: meta(name), Spec: api.NFSExportSpec{Cluster: name, Path: "/"}},
	}
	for _, host := range []string{"h1", "h2"} {
		objects = append(objects, &api.StorageNode{ObjectMeta: meta(name + "-" + host), Spec: api.StorageNodeSpec{
			Type: kind, Cluster: name, NodeSelector: map[string]string{api.LabelHostname: host},
		}})
	}
	for _, o := range objects {
		if err := w.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
