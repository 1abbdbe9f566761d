package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// lone starts the only member of a cluster.
func lone(t *testing.T) *Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := Start(ctx, loneConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func loneConfig(t *testing.T) Config {
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
	return Config{
		Dir: dir + "/etcd", Name: "m1", Address: "127.0.0.1", PeerPort: freePort(t), ClientPort: freePort(t),
		CertFile: pki.CertFile(dir, "etcd"), KeyFile: pki.KeyFile(dir, "etcd"), CAFile: pki.CertFile(dir, "ca"),
		Log: slog.New(slog.DiscardHandler),
	}
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

func TestMembers(t *testing.T) {
	m, ctx := lone(t), t.Context()
	const second, third = "https://127.0.0.1:2", "https://127.0.0.1:3"
	for _, peer := range []string{second, third} {
		if err := m.AddLearner(ctx, peer); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.Names(), []string{second, third, "m1"}; !slices.Equal(got, want) {
		t.Errorf("the members are %v, want %v", got, want)
	}
	info, ok := m.Find(second)
	if !ok || info.Voter || info.Name != "" {
		t.Errorf("the learner is %+v, %v", info, ok)
	}
	own := m.Members()[slices.IndexFunc(m.Members(), func(i Info) bool { return i.Voter })].PeerURL
	for _, want := range []string{"m2=" + second, "=" + third, "m1=" + own} {
		if got := m.Existing("m2", second); !slices.Contains(strings.Split(got, ","), want) {
			t.Errorf("to be started with %q, want %q in it", got, want)
		}
	}
	if err := m.Promote(ctx, info.ID); !errors.Is(err, ErrNotReady) {
		t.Errorf("promoting one that never ran: %v", err)
	}
	if err := m.Remove(ctx, info.ID); err != nil || m.Voters() != 1 || len(m.Names()) != 2 {
		t.Errorf("removing: %v; the members are %v", err, m.Names())
	}
	if !m.Answers(ctx, own) || m.Answers(ctx, third) {
		t.Error("a member that runs does not answer, or one that does not run does")
	}
	if !m.Works(ctx, own) || m.Works(ctx, third) || m.Ready(ctx) != nil {
		t.Error("a member that does its part is not seen to, or one that does not run is")
	}
	if err := m.Free(ctx, "m1", "https://127.0.0.1:9"); !errors.Is(err, ErrTaken) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := m.Free(ctx, "m3", third); err != nil {
		t.Errorf("a place that is free: %v", err)
	}
}

// TestMember_Works: one that says that it is there, and does nothing, does not work. A member whose disk hangs is like this; the
// end-to-end tests have a real one.
func TestMember_Works(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/raft/probing" {
			return
		}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer hung.Close()
	defer close(over)
	m := &Member{prober: hung.Client()}
	if !m.Answers(t.Context(), hung.URL) || m.Works(t.Context(), hung.URL) {
		t.Errorf("answers: %v, works: %v; want a member that answers and does not work",
			m.Answers(t.Context(), hung.URL), m.Works(t.Context(), hung.URL))
	}
}

// TestMember_Quorum: a member with an alarm is not ready, and has a quorum.
func TestMember_Quorum(t *testing.T) {
	m := lone(t)
	_, err := m.etcd.Server.Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: m.ID(), Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.Ready(t.Context()) == nil {
		t.Error("ready with an alarm")
	}
	if err := m.Quorum(t.Context()); err != nil {
		t.Errorf("no quorum: %v", err)
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
	ended := false
	if Settle(false, func() { ended = true }); !ended {
		t.Error("what uses a member that works was not waited for")
	}
}
