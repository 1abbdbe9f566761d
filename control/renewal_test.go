package control_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// TestRenewal: certificates that live for 90 seconds are renewed twice while a server and an agent work: nothing
// fails, over old connections or new ones, watches go on, and what is on disk is good at each moment.
func TestRenewal(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "renews")
	c.Init, c.CertificateLifetime = true, 90*time.Second // renewed when 24 s are left: a busy machine needs some for a new connection
	log := &lockedBuffer{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	s, _ := start(t, c)
	dir := t.TempDir()
	a, err := control.OpenAgent(timeout(t), control.AgentConfig{
		DataDir: dir, Name: "renewed", JoinToken: newToken(t, s, join.RoleAgent), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ended, agent, server := watchOwn(t, a.Config(), "renewed"), newClient(t, a.Config()), newClient(t, s.Config())
	seen := map[string]map[string]bool{}
	note := func(dir, name string) int {
		t.Helper()
		pair, err := pki.LoadPair(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if seen[name] == nil {
			seen[name] = map[string]bool{}
		}
		seen[name][pair.Cert.SerialNumber.String()] = true
		return len(seen[name])
	}
	for rounds, deadline := 0, time.Now().Add(8*time.Minute); rounds < 3; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("too few renewals in eight minutes: %v", seen)
		}
		rounds = note(control.HostDir(dir), "host")
		for _, name := range []string{"server", "etcd", "admin"} {
			rounds = min(rounds, note(filepath.Join(c.DataDir, "pki"), name))
		}
		if err := agent.Get(t.Context(), key("", "renewed"), nodes("")); err != nil {
			t.Fatalf("the agent: %v", err)
		}
		if err := server.Get(t.Context(), key("", "renewed"), nodes("")); err != nil {
			t.Fatalf("the server itself: %v", err)
		}
		newConnections(t, c)
	}
	select {
	case <-ended:
		t.Error("a watch was cut off by a renewal")
	default:
	}
	if text := log.String(); !bytes.Contains([]byte(text), []byte("certificates of this server were renewed")) {
		t.Errorf("the log says nothing of renewals:\n%s", text)
	}
}

// newConnections reaches the API with the kubeconfig as it is now, and etcd with the certificate as it is now.
func newConnections(t *testing.T, c control.Config) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", control.AdminKubeconfig(c.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := newClient(t, config).Get(ctx, key("", "renewed"), nodes("")); err != nil {
		t.Fatalf("the administrator: %v", err)
	}
	if _, err := fromEtcd(t, c, filepath.Join(c.DataDir, "pki"), "etcd", "/registry/namespaces/default"); err != nil {
		t.Fatalf("etcd: %v", err)
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
