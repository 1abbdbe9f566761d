package etcd

import (
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestValue: of a key that was written twice the last value is read, and none of one that was deleted or never written, nor of one whose name begins alike.
func TestValue(t *testing.T) {
	t.Parallel()
	m, err := Start(t.Context(), loneConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	for _, w := range []struct{ key, value string }{{"a", "1"}, {"a/b", "other"}, {"gone", "1"}, {"a", "2"}, {"z", "what holds a and gone"}} {
		if _, err := m.etcd.Server.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte(w.key), Value: []byte(w.value)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.etcd.Server.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte("gone")}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := m.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "2", "a/b": "other", "gone": "", "never": ""} {
		if got, err := Value(path, key); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", key, got, err, want)
		}
	}
	if _, err := Value(filepath.Join(t.TempDir(), "none"), "a"); err == nil {
		t.Error("a file that is not there was read")
	}
}
