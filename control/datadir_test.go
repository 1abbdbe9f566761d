package control_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
)

func TestStart_refusals(t *testing.T) {
	_, running := sharedServer(t)
	for _, test := range []struct {
		name string
		set  func(c *control.Config)
		want string
	}{
		{"empty directory", func(*control.Config) {}, "holds no server: make a new control plane with --init; or run 'holdfast token create"},
		{"init and join", func(c *control.Config) { c.Init, c.JoinToken = true, "x" }, "choose one of them"},
		{"directory in use", func(c *control.Config) { c.DataDir = running.DataDir }, "(pid " + strconv.Itoa(os.Getpid()) + ") runs on the data directory"},
		{"bad name", func(c *control.Config) { c.Init, c.Name = true, "A_b" }, `the name "A_b" cannot be used`},
		{"bad address", func(c *control.Config) { c.Init, c.Address = true, "here" }, "is not an IP address"},
		{"not this machine's address", func(c *control.Config) { c.Init, c.Address = true, "192.0.2.1" }, "does not have the address"},
		{"API port taken", func(c *control.Config) { c.Init, c.APIPort = true, running.APIPort }, "choose another port with --api-port"},
		{"peer port taken", func(c *control.Config) { c.Init, c.EtcdPeerPort = true, running.EtcdPeerPort }, "choose another port with --etcd-peer-port"},
		{"client port taken", func(c *control.Config) { c.Init, c.EtcdClientPort = true, running.EtcdClientPort }, "choose another port with --etcd-client-port"},
		{"the database on a disk of its own", func(c *control.Config) {
			c.Init = true
			if err := os.Symlink("/proc", filepath.Join(c.DataDir, "etcd")); err != nil {
				t.Fatal(err)
			}
		}, "put the whole data directory on one"},
		{"damaged token", func(c *control.Config) { c.JoinToken = "hf1.x" }, "the token is damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newConfig(t, t.TempDir(), "x")
			test.set(&c)
			s, err := control.Start(timeout(t), c)
			if err == nil {
				s.Stop()
			}
			wantError(t, err, test.want)
			if l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(c.APIPort))); err == nil {
				l.Close()
			} else if c.APIPort != running.APIPort {
				t.Errorf("the refused server left its port open: %v", err)
			}
		})
	}
}

// TestStart_newerFormat: a directory of a newer version is left alone to the last byte.
func TestStart_newerFormat(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "VERSION"), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConfig(t, dir, "x")
	c.Init = true
	_, err := control.Start(timeout(t), c)
	wantError(t, err, "made by a newer holdfast (format 2, this one knows 1): install that version")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the directory holds %v, want VERSION alone", entries)
	}
}

// TestStart_again: a server comes back as what it was, with what it stored, and a second --init is refused.
func TestStart_again(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "again")
	c.Init = true
	s, stop := start(t, c)
	ns := newNamespace(t, newClient(t, s.Config()))
	if err := newClient(t, s.Config()).Create(t.Context(), object(t, ns, validCluster)); err != nil {
		t.Fatal(err)
	}
	revision := revisions(t, s)
	stop()

	_, err := control.Start(timeout(t), c)
	wantError(t, err, "holds the server again (127.0.0.1) already: start it without --init")
	other := control.Config{DataDir: c.DataDir, Name: "other", Log: c.Log}
	_, err = control.Start(timeout(t), other)
	wantError(t, err, "belongs to the server again, not other")

	s, stop = start(t, control.Config{DataDir: c.DataDir, Log: c.Log})
	if err := newClient(t, s.Config()).Get(t.Context(), key(ns, "a"), object(t, ns, validCluster)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(revision, revisions(t, s)); diff != "" {
		t.Errorf("the second start wrote (-before +after):\n%s", diff)
	}
	stop()
	if err := os.RemoveAll(filepath.Join(c.DataDir, "etcd")); err != nil {
		t.Fatal(err)
	}
	_, err = control.Start(timeout(t), control.Config{DataDir: c.DataDir, Log: c.Log})
	wantError(t, err, "etcd is missing, and without it the server would stop the daemons of all hosts")
}

// TestStart_interruptedInit: what an interrupted init made is used by the next one.
func TestStart_interruptedInit(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "resumes")
	c.Init = true
	_, stop := start(t, c)
	want := authorityOf(t, c)
	stop()
	// This file is written last.
	if err := os.Remove(filepath.Join(c.DataDir, "server.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(c.DataDir, "host")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(c.DataDir, "etcd")); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	if diff := cmp.Diff(want, authorityOf(t, c)); diff != "" {
		t.Errorf("the authority was made anew (-before +after):\n%s", diff)
	}
}

func authorityOf(t *testing.T, c control.Config) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.DataDir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStop_withWatchers: a server stops at once although agents watch it, and their watches end.
func TestStop_withWatchers(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "watched")
	c.Init = true
	s, stop := start(t, c)
	d, err := dynamic.NewForConfig(s.AgentConfig())
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Resource(api.GroupVersion.WithResource("daemons")).Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.host=watched"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("stopping took %s", took)
	}
	for range w.ResultChan() { // It is closed when the server is gone.
	}
}
