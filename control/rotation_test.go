package control_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
)

const often = 100 * time.Millisecond

func rotator(t *testing.T, s *control.Server, dataDir string) (*rotation.Handler, *api.Action) {
	t.Helper()
	h := &rotation.Handler{Client: newClient(t, s.Config()), Now: time.Now, Authority: func() *pki.Authority { return authorityIn(t, dataDir) }}
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "rotate"},
		Spec:       api.ActionSpec{Kind: rotation.KindName, Target: rotation.Target},
	}
	if err := h.Client.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return h, a
}

func authorityIn(t *testing.T, dataDir string) *pki.Authority {
	t.Helper()
	authority, err := pki.OpenAuthority(filepath.Join(dataDir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// carry calls a step, or its undoing, until it is done.
func carry(t *testing.T, step string, do func(context.Context, *api.Action, string) (action.Progress, error), a *api.Action) {
	t.Helper()
	eventually(t, func() error {
		p, err := do(t.Context(), a, step)
		if err == nil && !p.Done {
			err = fmt.Errorf("%s: %s %s", step, p.Message, p.WaitsFor)
		}
		return err
	})
}

// TestRotation: the authority of a server, a standby and an agent is replaced while all of them work. At the end nobody believes the
// old one, not even in etcd.
func TestRotation(t *testing.T) {
	t.Parallel()
	first := newConfig(t, t.TempDir(), "r1")
	first.Init, first.Refresh = true, often
	s1, stop1 := start(t, first)
	second := newConfig(t, t.TempDir(), "r2")
	second.JoinToken, second.Refresh = newToken(t, s1, join.RoleServer), often
	s2, stop2 := start(t, second)
	agentDir := t.TempDir()
	a, err := control.OpenAgent(timeout(t), control.AgentConfig{
		DataDir: agentDir, Name: "r3", JoinToken: newToken(t, s1, join.RoleAgent), Refresh: often, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAgent := sync.OnceFunc(a.Close)
	defer closeAgent()
	old, before := authorityIn(t, first.DataDir), fetch(t, s1)
	forged := configAs(t, s1, first, pki.Leaf{User: "x", Groups: []string{"holdfast:admins"}})
	h, act := rotator(t, s1, first.DataDir)

	working := work(t, map[string]client.Client{
		"r1": newClient(t, s1.AgentConfig()), "r2": newClient(t, s2.AgentConfig()), "r3": newClient(t, a.Config()),
	})
	for _, step := range []string{"trust", "sign", "drop"} {
		carry(t, step, h.Step, act)
		carry(t, step, h.Step, act) // as after a crash
	}
	working()

	fresh := authorityIn(t, first.DataDir)
	if fresh.Fingerprint() == old.Fingerprint() || authorityIn(t, second.DataDir).Fingerprint() != fresh.Fingerprint() {
		t.Error("the servers do not both have the new authority")
	}
	for _, file := range []struct{ dir, name string }{
		{filepath.Join(first.DataDir, "pki"), "server"},
		{filepath.Join(second.DataDir, "pki"), "etcd"},
		{filepath.Join(first.DataDir, "pki"), "admin"},
		{control.HostDir(agentDir), "host"},
		{control.HostDir(second.DataDir), "host"},
	} {
		pair, err := pki.LoadPair(file.dir, file.name)
		if err != nil || pair.Cert.CheckSignatureFrom(fresh.Certificate()) != nil {
			t.Errorf("%v: the new authority did not sign it, %v", file, err)
		}
	}
	if _, err := endpoints.List(t.Context(), forged); err == nil {
		t.Error("a certificate of the old authority was taken after it was dropped")
	}
	p, err := h.Step(t.Context(), act, "restart")
	if err != nil || p.Done || !strings.Contains(p.WaitsFor, "new authority (storage daemons keep running): server r1") || p.Count != 1 {
		t.Errorf("before a restart: %+v, %v", p, err)
	}
	first.Init, second.JoinToken = false, ""
	stop1()
	s1, stop1 = start(t, first)
	stop2()
	_, stop2 = start(t, second)
	h.Client = newClient(t, s1.Config())
	carry(t, "restart", h.Step, act)
	carry(t, "restart", h.Step, act)
	admin, err := clientcmd.BuildConfigFromFlags("", control.AdminKubeconfig(second.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := endpoints.Trusted(t.Context(), admin)
	if err != nil || len(trusted) != 1 || pki.Fingerprint(trusted[0]) != fresh.Fingerprint() {
		t.Errorf("the authorities at the end: %d, %v", len(trusted), err)
	}
	joinLate(t, s1)
	closeAgent()
	stop1()
	stop2()
	restoreOld(t, first, second, before, agentDir)
}

// restoreOld restores a backup of before the authority was replaced. It brings back the old one: the server's own host knows it by itself; another one, and another
// server, join again under their names and keys.
func restoreOld(t *testing.T, c, second control.Config, file, agentDir string) {
	t.Helper()
	_, err := restoreInto(t, c, file)
	wantError(t, err, "If the backup is older than a 'holdfast ca rotate', --replace takes it")
	if _, err := control.Restore(timeout(t), control.RestoreConfig{Config: c, File: file, Replace: true}); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, c)
	if _, err := endpoints.List(t.Context(), s.AgentConfig()); err != nil {
		t.Errorf("the server's own host does not know the old authority: %v", err)
	}
	if err := os.Remove(filepath.Join(control.HostDir(agentDir), "servers")); err != nil {
		t.Fatal(err)
	}
	if err := joinAgent(t, agentDir, "r3", newToken(t, s, join.RoleAgent)); err != nil {
		t.Errorf("a host does not join again: %v", err)
	}
	for _, name := range []string{"server.json", "pki", "etcd", "admin.kubeconfig", "host/servers"} {
		if err := os.RemoveAll(filepath.Join(second.DataDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	second.JoinToken = newToken(t, s, join.RoleServer)
	start(t, second)
}

// joinLate has a host join after all.
func joinLate(t *testing.T, s *control.Server) {
	t.Helper()
	if err := joinAgent(t, t.TempDir(), "late-joiner", newToken(t, s, join.RoleAgent)); err != nil {
		t.Errorf("joining with the new authority: %v", err)
	}
}

// work has hosts send requests until the returned function is called, which fails the test if one of them failed.
func work(t *testing.T, clients map[string]client.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for host, c := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := c.Get(ctx, key("", host), nodes("")); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", host, err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// TestRotation_agentOff: a host that is off is waited for in each step, by name, and goes on when it is back, without a token.
func TestRotation_agentOff(t *testing.T) {
	c := newConfig(t, t.TempDir(), "off1")
	c.Init, c.Refresh = true, often
	s, _ := start(t, c)
	dir := t.TempDir()
	open := func(token string) *control.Agent {
		a, err := control.OpenAgent(timeout(t), control.AgentConfig{
			DataDir: dir, Name: "sleepy", JoinToken: token, Refresh: often, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := open(newToken(t, s, join.RoleAgent))
	h, act := rotator(t, s, c.DataDir)
	for _, step := range []string{"trust", "sign", "drop"} {
		a.Close()
		eventually(t, func() error {
			p, err := h.Step(t.Context(), act, step)
			if err == nil && (p.Done || !strings.HasSuffix(p.WaitsFor, ": host sleepy")) {
				err = fmt.Errorf("%s: got %+v", step, p)
			}
			return err
		})
		a = open("")
		carry(t, step, h.Step, act)
	}
	defer a.Close()
	if _, err := endpoints.List(t.Context(), a.Config()); err != nil {
		t.Errorf("the host that was off is locked out: %v", err)
	}
	if trusted, err := endpoints.Trusted(t.Context(), a.Config()); err != nil || len(trusted) != 1 {
		t.Errorf("it believes %d authorities, %v", len(trusted), err)
	}
}

// TestRotation_undone: a rotation that waits for a silent host names it, and goes back without a trace from the step that it is
// in.
func TestRotation_undone(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "u1")
	c.Init, c.Refresh = true, often
	s, _ := start(t, c)
	old := authorityIn(t, c.DataDir).Fingerprint()
	h, act := rotator(t, s, c.DataDir)
	carry(t, "trust", h.Step, act)
	newHost(t, s, c, "silent")
	if _, err := h.Step(t.Context(), act, "sign"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		p, err := h.Step(t.Context(), act, "sign")
		if want := "host silent"; err == nil && (p.Done || !strings.HasSuffix(p.WaitsFor, "authority: "+want) || p.Count != 2 || p.Total != 3) {
			err = fmt.Errorf("got %+v", p)
		}
		return err
	})
	if err := h.Check(t.Context(), &api.Action{}); err == nil {
		t.Error("a second rotation was accepted beside the first")
	}
	if err := h.Client.Delete(t.Context(), nodes("silent")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"sign", "trust"} {
		carry(t, step, h.Undo, act)
		carry(t, step, h.Undo, act)
	}
	if got := authorityIn(t, c.DataDir).Fingerprint(); got != old {
		t.Error("the old authority is not back")
	}
	trusted, err := endpoints.Trusted(t.Context(), s.AgentConfig())
	if err != nil || len(trusted) != 1 || pki.Fingerprint(trusted[0]) != old {
		t.Errorf("the authorities at the end: %d, %v", len(trusted), err)
	}
	if err := h.Check(t.Context(), &api.Action{}); err != nil {
		t.Errorf("another rotation: %v", err)
	}
}

// TestRotation_cutOff: a server that is cut off while it puts a new authority in the place of the old one starts with a whole
// one.
func TestRotation_cutOff(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "cut")
	c.Init = true
	_, stop := start(t, c)
	stop()
	dir := filepath.Join(c.DataDir, "pki")
	next, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.SaveNamed(dir, "next"); err != nil {
		t.Fatal(err)
	}
	// The key was replaced, and the certificate was not.
	certificate := authorityIn(t, c.DataDir).Certificate()
	if err := next.Save(dir); err != nil {
		t.Fatal(err)
	}
	if err := pki.SaveChain(dir, "ca", certificate, nil); err != nil {
		t.Fatal(err)
	}
	if err := pki.SaveChain(dir, "trust", certificate, []*x509.Certificate{next.Certificate()}); err != nil {
		t.Fatal(err)
	}
	c.Init = false
	s, _ := start(t, c)
	newNamespace(t, newClient(t, s.Config()))
	if authorityIn(t, c.DataDir).Fingerprint() != next.Fingerprint() {
		t.Error("the change was not carried through")
	}
}
