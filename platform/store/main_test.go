package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/engine/storetest"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// config reaches the real API server that all tests share.
var config *rest.Config

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime's: it is about its own steps
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "holdfast-bare-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ports, err := freePorts(3)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	server, err := control.Start(ctx, control.Config{
		DataDir: dir, Name: "s1", Address: "127.0.0.1", Init: true,
		APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	config = server.Config()
	return run(), nil
}

// freePorts returns ports of loopback that are free now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// newStore returns the Store of a server that leads from now on.
func newStore(t testing.TB, token string) *store.Store {
	t.Helper()
	must(t, newWorld(t).lead(t.Context(), token))
	s, err := bare.NewStore(t.Context(), config, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// world is the administrator and the agents, by a client of their own.
type world struct{ client.Client }

func newWorld(t testing.TB) world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	unlimited := fence.Config(config)
	unlimited.QPS = -1
	c, err := client.New(unlimited, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return world{c}
}

func (w world) Create(ctx context.Context, o storetest.Object) error { return w.Client.Create(ctx, o) }
func (w world) Update(ctx context.Context, o storetest.Object) error { return w.Client.Update(ctx, o) }
func (w world) Delete(ctx context.Context, o storetest.Object) error { return w.Client.Delete(ctx, o) }

func (w world) Get(ctx context.Context, o storetest.Object) error {
	return w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
}

func (w world) UpdateStatus(ctx context.Context, o storetest.Object) error {
	return w.Status().Update(ctx, o)
}

func (w world) Events(ctx context.Context, cluster types.NamespacedName) ([]api.ClusterEvent, error) {
	var list api.ClusterEventList
	err := w.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{api.LabelCluster: cluster.Name})
	slices.SortFunc(list.Items, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	return list.Items, err
}

// TakeLock makes holder the leader, who then takes the lock.
func (w world) TakeLock(ctx context.Context, cluster types.NamespacedName, holder string) error {
	if err := w.lead(ctx, holder); err != nil {
		return err
	}
	var lock coordinationv1.Lease
	name := types.NamespacedName{Namespace: store.SystemNamespace, Name: "orchestrate-" + cluster.Namespace + "." + cluster.Name}
	if err := w.Client.Get(ctx, name, &lock); err != nil {
		return err
	}
	lock.Spec.HolderIdentity = &holder
	lock.Spec.LeaseTransitions = ptr.To(*lock.Spec.LeaseTransitions + 1)
	return w.Client.Update(ctx, &lock)
}

// lead makes a server the leader, as an election does.
func (w world) lead(ctx context.Context, token string) error {
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: store.SystemNamespace, Name: store.LeaderLease}}
	if err := w.Client.Delete(ctx, leader); client.IgnoreNotFound(err) != nil {
		return err
	}
	leader = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: store.SystemNamespace, Name: store.LeaderLease}}
	leader.Spec = coordinationv1.LeaseSpec{HolderIdentity: &token, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NowMicro())}
	return w.Client.Create(fence.Setting(ctx, fence.Token{Name: store.LeaderLease, Value: token}), leader)
}

// Lead makes the server of the Store under test the leader.
func (w world) Lead(ctx context.Context) error { return w.lead(ctx, "s1") }

// beat renews the Lease of a host's agent.
func (w world) beat(ctx context.Context, host string) error {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: store.SystemNamespace, Name: "host-" + host}}
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.RenewTime = &now
	if apierrors.IsNotFound(err) {
		return w.Client.Create(ctx, lease)
	}
	return errors.Join(err, w.Client.Update(ctx, lease))
}
