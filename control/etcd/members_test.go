package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// lone starts the only member of a cluster.
func lone(t *testing.T) *Member {
	t.Helper()
	dir := t.TempDir()
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Save(dir); err != nil {
		t.Fatal(err)
	}
	leaf := pki.Leaf{User: User, Server: true, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if _, err := authority.Ensure(dir, "etcd", leaf, time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := Start(ctx, Config{
		Dir: dir + "/etcd", Name: "m1", Address: "127.0.0.1", PeerPort: freePort(t), ClientPort: freePort(t),
		CertFile: pki.CertFile(dir, "etcd"), KeyFile: pki.KeyFile(dir, "etcd"), CAFile: pki.CertFile(dir, "ca"),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestAdd_abandoned: a machine that dies while it joins holds up others for a while, and not for ever.
func TestAdd_abandoned(t *testing.T) {
	m, ctx := lone(t), t.Context()
	const second, third = "https://127.0.0.1:2", "https://127.0.0.1:3"
	first, err := m.Add(ctx, "m2", second)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Add(ctx, "m2", second)
	if err != nil || again != first || len(m.Names()) != 2 {
		t.Errorf("adding it again: got %q, %v, want %q; the members are %v", again, err, first, m.Names())
	}
	if _, err := m.Add(ctx, "m3", third); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), second) {
		t.Errorf("adding another one at once: got %v, want to be told to wait for %s", err, second)
	}
	m.abandonAfter = 0
	if _, err := m.Add(ctx, "m3", third); err != nil {
		t.Errorf("adding another one when the first is given up: %v", err)
	}
	if got, want := m.Names(), []string{third, "m1"}; !slices.Equal(got, want) {
		t.Errorf("the members are %v, want %v", got, want)
	}
	if m.Voters() != 1 {
		t.Errorf("%d members vote, want 1", m.Voters())
	}
}

// TestWithin: a part of etcd that is gone, as after a write to a full disk, is not waited for without an end.
func TestWithin(t *testing.T) {
	if !within(time.Minute, func() {}) {
		t.Error("what returned was not seen to")
	}
	gone := make(chan struct{})
	defer close(gone)
	if within(time.Millisecond, func() { <-gone }) {
		t.Error("what waits is taken to have returned")
	}
}
