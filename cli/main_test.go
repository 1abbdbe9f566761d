package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// shared is one server, without an engine or an agent, that serves all tests that ask for it. They work in namespaces and with
// hosts of their own. Of all that a leader does it answers Plans alone.
var shared struct {
	once   sync.Once
	dir    string
	port   int
	server *control.Server
	err    error
}

func TestMain(m *testing.M) {
	quietLibraries()
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

func startShared(t *testing.T) error {
	dir, err := os.MkdirTemp("", "holdfast-cli-")
	if err != nil {
		return err
	}
	shared.dir = dir
	ports := freePorts(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	shared.port = ports[0]
	shared.server, err = control.Start(ctx, control.Config{
		DataDir: dir, Name: "s1", Address: "127.0.0.1", Init: true,
		APIPort: ports[0], EtcdPeerPort: ports[1], EtcdClientPort: ports[2],
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err == nil {
		go answerPlans(context.Background(), shared.server)
	}
	return err
}

// answerPlans leads by answering Plans, until ctx ends.
func answerPlans(ctx context.Context, server *control.Server) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := &election.Election{REST: server.Config(), Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: "s1", Log: log}
	_ = e.Run(ctx, func(ctx context.Context, token string) {
		store, err := bare.NewStore(ctx, server.Config(), token)
		if err != nil {
			log.Error("plans are not answered", "error", err)
			return
		}
		defer store.Close()
		answerFrom(ctx, store, log)
	})
}

func answerFrom(ctx context.Context, store *store.Store, log *slog.Logger) {
	_ = leader.Propose(ctx, leader.ProposeConfig{
		Plans: store.Plans(), Drivers: drivers(answerIn, waits.Waits{}), Kinds: actionKinds(), Name: "s1", Log: log,
	})
}

// answersPlans has the server do that of all that a leader does, until the returned function is called or the test ends.
func (b *bench) answersPlans() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { answerPlans(ctx, b.server) })
	stop = func() { cancel(); running.Wait() }
	b.Cleanup(stop)
	return stop
}

// person uses the command line, and the API beside it, in one namespace.
type person struct {
	client.Client
	namespace, kubeconfig string
}

// newPerson is an administrator with a certificate in this name.
func newPerson(t *testing.T, namespace, name string) *person {
	t.Helper()
	return newMember(t, namespace, name, "holdfast:admins")
}

// newMember is somebody with a certificate in this name and group.
func newMember(t *testing.T, namespace, name, group string) *person {
	t.Helper()
	shared.once.Do(func() { shared.err = startShared(t) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	authority, err := pki.OpenAuthority(filepath.Join(shared.dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.NewPair(pki.Leaf{User: name, Groups: []string{group}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := &person{namespace: namespace, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := fmt.Sprintf("https://127.0.0.1:%d", shared.port)
	if err := pki.WriteKubeconfig(p.kubeconfig, server, "127.0.0.1", authority.CertPEM(), pair); err != nil {
		t.Fatal(err)
	}
	g := globals{kubeconfig: p.kubeconfig}
	if p.Client, err = g.client(); err != nil {
		t.Fatal(err)
	}
	return p
}

// do runs a command; input is its standard input.
func (p *person) do(input string, args ...string) (code int, out string) {
	var text bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args = append(args, "--kubeconfig", p.kubeconfig, "-n", p.namespace)
	code = run(ctx, args, streams{
		in: strings.NewReader(input), out: &text, err: &text,
		firstWordTime: 500 * time.Millisecond, // most of these tests have no leader
	})
	return code, text.String()
}

// must runs a command that has to end with this code, and to say these things.
func (p *person) must(t *testing.T, want int, input string, args []string, says ...string) string {
	t.Helper()
	code, out := p.do(input, args...)
	if code != want {
		t.Fatalf("holdfast %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, want, out)
	}
	for _, text := range says {
		if !strings.Contains(out, text) {
			t.Errorf("holdfast %s does not say %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}
