package doctor_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/doctor"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/join"
)

// TestLook: on a real server, what is well is found to be, and a stray process and an open token are found.
func TestLook(t *testing.T) {
	c := control.Config{
		DataDir: t.TempDir(), Name: "only", Address: "127.0.0.1", Init: true,
		APIPort: port(t), EtcdPeerPort: port(t), EtcdClientPort: port(t), Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := control.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := join.Create(ctx, s.Config(), join.RoleServer, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(c.DataDir, "agent", "daemons", "default.left"), 0o700); err != nil {
		t.Fatal(err)
	}
	strays(t)
	unfinishedBackup(t, c.DataDir)

	facts := doctor.Look(ctx, source(t, c), nil)
	for ctx.Err() == nil && slices.ContainsFunc(doctor.Examine(facts), func(f doctor.Finding) bool { return strings.Contains(f.Message, "only just begun to lead") }) {
		facts = doctor.Look(ctx, source(t, c), nil) // each look takes its time
	}
	if facts.Role != "server" || facts.Host != "only" || facts.Database == 0 || facts.Quota == 0 || len(facts.Servers) != 1 || facts.Servers[0].End.IsZero() {
		t.Errorf("facts: %+v", facts)
	}
	got := map[string]string{}
	for _, f := range doctor.Examine(facts) {
		got[f.Check] += string(f.Level) + " " + f.Message + "\n"
	}
	for check, want := range map[string]string{
		"api": "OK", "quorum": "OK the only server is ready", "database": "OK", "clock": "OK", "clusters": "OK", "actions": "OK", "files": "OK",
		"certificates": "OK", "tokens": "WARN a join token for servers", "strays": "the daemon default.stray-of-the-test", "snapshots": "WARN",
	} {
		if !strings.Contains(got[check], want) {
			t.Errorf("%s: got %q, want %q", check, got[check], want)
		}
	}
	if !strings.Contains(got["strays"], "default.left") {
		t.Errorf("what is left of a daemon was not found: %q", got["strays"])
	}
}

// TestLook_agent: a machine with an agent alone asks the servers as its host.
func TestLook_agent(t *testing.T) {
	c := control.Config{
		DataDir: t.TempDir(), Name: "served", Address: "127.0.0.1", Init: true,
		APIPort: port(t), EtcdPeerPort: port(t), EtcdClientPort: port(t), Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := control.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(s.Stop)
	defer stop()
	token, err := join.Create(ctx, s.Config(), join.RoleAgent, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	agent, err := control.OpenAgent(ctx, control.AgentConfig{DataDir: dir, Name: "hosted", JoinToken: token, Log: c.Log})
	if err != nil {
		t.Fatal(err)
	}
	agent.Close()
	look := func() *doctor.Facts {
		return doctor.Look(ctx, doctor.Source{DataDir: dir, Timeout: time.Minute}, errors.New("there is no kubeconfig"))
	}
	if f := look(); !f.AsHost || len(f.Servers) != 1 || f.Servers[0].Err != nil {
		t.Errorf("asked as a host: %t; the servers are %+v", f.AsHost, f.Servers)
	}
	stop()
	if f := look(); len(f.Servers) != 1 || f.Servers[0].Err == nil {
		t.Errorf("the server was stopped, and is %+v", f.Servers)
	}
}

// unfinishedBackup is what a server leaves that dies while it takes a backup: it is none.
func unfinishedBackup(t *testing.T, dataDir string) {
	t.Helper()
	dir := control.SnapshotDir(dataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".20260101T000000Z-r1.backup"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// strays starts a process that looks like a daemon of an agent. It has said something when this returns: for a moment after exec(2) a process has no
// environment.
func strays(t *testing.T) {
	t.Helper()
	stray := exec.CommandContext(t.Context(), "sh", "-c", "echo; read x")
	stray.Env = []string{"HOLDFAST_DAEMON=default.stray-of-the-test"}
	in, err := stray.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := stray.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = stray.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func source(t *testing.T, c control.Config) doctor.Source {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", control.AdminKubeconfig(c.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Source{Config: config, Client: cl, DataDir: c.DataDir, Version: "test", Timeout: time.Minute}
}

func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
