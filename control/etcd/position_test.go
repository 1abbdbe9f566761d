package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// TestReadPosition: it is that of the last entry, or of a snapshot that nothing was written after; zero where nothing was; and an error where that
// cannot be told.
func TestReadPosition(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(w *wal.WAL) error
		want  Position
	}{
		{"it has begun", func(*wal.WAL) error { return nil }, Position{}},
		{"entries", func(w *wal.WAL) error {
			return w.Save(raftpb.HardState{Term: 2, Commit: 1}, []raftpb.Entry{{Term: 1, Index: 1}, {Term: 2, Index: 2}})
		}, Position{2, 2}},
		{"entries of a leader that was overtaken", func(w *wal.WAL) error {
			return errors.Join(
				w.Save(raftpb.HardState{Term: 1, Commit: 1}, []raftpb.Entry{{Term: 1, Index: 1}, {Term: 1, Index: 2}, {Term: 1, Index: 3}}),
				w.Save(raftpb.HardState{Term: 2, Commit: 1}, []raftpb.Entry{{Term: 2, Index: 2}}))
		}, Position{2, 2}},
		{"filled by a snapshot", func(w *wal.WAL) error {
			return errors.Join(w.SaveSnapshot(walpb.Snapshot{Term: 3, Index: 90, ConfState: &raftpb.ConfState{}}), w.Save(raftpb.HardState{Term: 3, Commit: 90}, nil))
		}, Position{3, 90}},
		{"a snapshot that does not count yet", func(w *wal.WAL) error {
			return w.SaveSnapshot(walpb.Snapshot{Term: 3, Index: 90, ConfState: &raftpb.ConfState{}})
		}, Position{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(test.write(w), w.Close()); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadPosition(dir); err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
	if got, err := ReadPosition(t.TempDir()); err != nil || got != (Position{}) {
		t.Errorf("of nothing: got %+v, %v", got, err)
	}
	broken := filepath.Join(t.TempDir(), "member", "wal")
	text := []byte("this is no log, and long enough to be taken for one")
	if err := errors.Join(os.MkdirAll(broken, 0o700), os.WriteFile(filepath.Join(broken, "0000000000000000-0000000000000000.wal"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPosition(filepath.Dir(filepath.Dir(broken))); err == nil {
		t.Errorf("of what cannot be read: got %+v", got)
	}
}

// TestReadPosition_noLog: that there is no data is said only where it is certain.
func TestReadPosition_noLog(t *testing.T) {
	database := func(t *testing.T, dir string, applied uint64) string {
		path := filepath.Join(dir, "member", "snap", "db")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		config := backend.DefaultBackendConfig(zap.NewNop())
		config.Path = path
		b := backend.New(config)
		schema.CreateMetaBucket(b.BatchTx())
		if applied > 0 {
			tx := b.BatchTx()
			tx.LockOutsideApply()
			schema.UnsafeUpdateConsistentIndexForce(tx, applied, 1)
			tx.Unlock()
		}
		b.ForceCommit()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(t *testing.T, path string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		make  func(t *testing.T, dir string)
		known bool
	}{
		{"a database that etcd made before the log", func(t *testing.T, dir string) { database(t, dir, 0) }, true},
		{"a database that was about to be made", func(t *testing.T, dir string) { file(t, filepath.Join(dir, "member", "snap", "db")) }, true},
		{"a database that was filled", func(t *testing.T, dir string) { database(t, dir, 7) }, false},
		{"a database of which the end is gone", func(t *testing.T, dir string) {
			if err := os.Truncate(database(t, dir, 7), int64(2*os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a log that cannot be listed", func(t *testing.T, dir string) { file(t, filepath.Join(dir, "member", "wal")) }, false},
		{"a member that cannot be looked into", func(t *testing.T, dir string) { file(t, filepath.Join(dir, "member")) }, false},
		{"a log that is an empty directory", func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.make(t, dir)
			got, err := ReadPosition(dir)
			if (err == nil) != test.known || got != (Position{}) {
				t.Errorf("got %+v, %v; known: %v", got, err, test.known)
			}
		})
	}
}

// TestPosition_Compare: the later term counts, and in one term who has more.
func TestPosition_Compare(t *testing.T) {
	for _, test := range []struct {
		a, b Position
		want int
	}{{Position{2, 5}, Position{1, 9}, 1}, {Position{2, 5}, Position{2, 6}, -1}, {Position{2, 5}, Position{2, 5}, 0}} {
		if got := test.a.Compare(test.b); got != test.want {
			t.Errorf("%+v and %+v: got %d", test.a, test.b, got)
		}
	}
}
