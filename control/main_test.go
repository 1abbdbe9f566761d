package control_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
)

// One server serves all tests that do not stop it. They work in namespaces of their own.
var shared struct {
	once   sync.Once
	server *control.Server
	config control.Config
	err    error
}

// connections are what the libraries keep open between servers of one process, one of which was stopped: a new member of
// etcd never closes the connection by which it asked for the list of members, and client-go keeps its connections for later.
var connections = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*serverConn).readFrames"),
	// A list that waited for the cache of the API server leaves a timer, which ends by itself after some seconds.
	goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshAndBlock.func2"),
}

// TestMain also proves that servers that were stopped leave no goroutine behind.
func TestMain(m *testing.M) {
	if text := os.Getenv(victimEnv); text != "" {
		if err := runVictim(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// Much of what the tests do is to wait for elections, and for connections to end. With more of them at once, members of etcd are silent for
	// too long on two cores that others use as well.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
		os.RemoveAll(shared.config.DataDir)
	}
	if err := leaked(time.Now().Add(30 * time.Second)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leaked says which goroutines are left behind. One look gives them half a second to end, which is short on a busy machine.
func leaked(end time.Time) error {
	for {
		if err := goleak.Find(connections...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func sharedServer(t *testing.T) (*control.Server, control.Config) {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "holdfast-control-")
		if err != nil {
			shared.err = err
			return
		}
		shared.config = newConfig(t, dir, "shared")
		shared.config.Init = true
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		shared.server, shared.err = control.Start(ctx, shared.config)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server, shared.config
}

// lastPort is the last port that a test was given. They lie below those that the kernel gives to others, and no two tests that run
// at one time get the same.
var lastPort atomic.Int32

func freePort() int {
	for {
		port := 12000 + (os.Getpid()*97+int(lastPort.Add(1)))%20000
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
}

// newConfig is for a server on loopback, with ports that are free now.
func newConfig(t *testing.T, dir, name string) control.Config {
	t.Helper()
	ports := [3]int{freePort(), freePort(), freePort()}
	return control.Config{
		DataDir: dir, Name: name, Address: "127.0.0.1",
		APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("test", t.Name(), "server", name),
	}
}

// start starts a server, which is stopped when the test ends unless stop was called before.
func start(t *testing.T, c control.Config) (s *control.Server, stop func()) {
	t.Helper()
	s, err := control.Start(timeout(t), c)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(s.Stop)
	t.Cleanup(stop)
	return s, stop
}

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newNamespace makes a namespace of the test's own.
func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{}
	ns.GenerateName = "test-"
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func timeoutOf(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

var errStillReady = errors.New("the server still says that it is ready")
