package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/store"
	"github.com/holdfast-storage/holdfast/test/storeworld"
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

// home is this home, with the real API server that all tests share.
var home = storeworld.Home{NewStore: func(ctx context.Context, token string) (*store.Store, error) {
	return bare.NewStore(ctx, config, token)
}, Lead: lead}

// newStore returns the Store of a server that leads from now on.
func newStore(t testing.TB, token string) *store.Store {
	t.Helper()
	must(t, newWorld(t).LeadAs(t.Context(), token))
	s, err := home.NewStore(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// world is the administrator and the agents, by a client of their own.
type world struct{ storeworld.World }

func newWorld(t testing.TB) world {
	t.Helper()
	home.Writers = fence.Config(config)
	w, err := storeworld.New(home)
	if err != nil {
		t.Fatal(err)
	}
	return world{w}
}

// lead makes a server the leader, as an election does.
func lead(ctx context.Context, c client.Client, token string) error {
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease}}
	if err := c.Delete(ctx, leader); client.IgnoreNotFound(err) != nil {
		return err
	}
	leader = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease}}
	leader.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &token, LeaseDurationSeconds: ptr.To[int32](15),
		RenewTime: ptr.To(metav1.NowMicro()),
	}
	return c.Create(fence.Setting(ctx, fence.Token{Name: api.LeaderLease, Value: token}), leader)
}
