package etcd

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMember_Snapshot_ended: a backup that is under way when the member ends, as one that was removed does, fails, and nothing else does.
func TestMember_Snapshot_ended(t *testing.T) {
	t.Parallel()
	m, err := Start(t.Context(), loneConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	m.Stop()
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := m.Snapshot(path); err == nil {
		t.Error("there is a snapshot of a database that is closed")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a part of it is left")
	}
}
