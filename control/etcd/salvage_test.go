package etcd

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestSalvage_removed: what a member holds that was removed, and knows it, can be had; also where its removal is in the log alone, because it was killed
// before its database was written.
func TestSalvage_removed(t *testing.T) {
	c, ctx := loneConfig(t), t.Context()
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	first, err := Start(start, c)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(first.Stop)
	t.Cleanup(stop)
	c.Name, c.Dir, c.PeerPort, c.ClientPort = "m2", filepath.Join(t.TempDir(), "etcd"), freePort(t), freePort(t)
	peer := PeerURL(c.Address, c.PeerPort)
	if err := first.AddLearner(ctx, peer); err != nil {
		t.Fatal(err)
	}
	info, _ := first.Find(peer)
	c.Existing = first.Existing("m2", peer)
	go func() {
		for ctx.Err() == nil && first.Promote(ctx, info.ID) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	second, err := Start(start, c)
	if err != nil {
		t.Fatal(err)
	}
	written := put(t, first)
	before := filepath.Join(t.TempDir(), "before")
	if err := second.Snapshot(before); err != nil {
		t.Fatal(err)
	}
	if err := first.Remove(ctx, info.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-second.Failed():
	case <-start.Done():
		t.Fatal("the member does not learn that it was removed")
	}
	second.Abandon()
	// It is left to end by itself where it takes longer than Abandon waits; until then it may write.
	select {
	case <-second.etcd.Server.StopNotify():
	case <-start.Done():
		t.Fatal("the member that was removed does not end")
	}
	wantSalvaged(t, c, written)
	text, err := os.ReadFile(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "member", "snap", "db"), text[:len(text)-sha256.Size], 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the other member runs, and would have the copy stop, which is no member
		wantSalvaged(t, c, written)
	}
	stop()
	wantSalvaged(t, c, written)
}

// wantSalvaged: what a member holds can be had up to a revision.
func wantSalvaged(t *testing.T, c Config, want int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := Salvage(t.Context(), c.Dir, path, c); err != nil {
		t.Fatal(err)
	}
	if revision, err := Revision(path); err != nil || revision != want {
		t.Errorf("got the revision %d, %v; want %d", revision, err, want)
	}
}

// put writes something, and returns the revision.
func put(t *testing.T, m *Member) int64 {
	t.Helper()
	r, err := m.etcd.Server.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("key"), Value: []byte("value")})
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}
