package damaged_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/damaged"
)

// put makes the files of a member below a data directory.
func put(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd", "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) *damaged.Note {
	t.Helper()
	n, err := damaged.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMoveAside: the files are kept under a name with the time, the last two of them; a move that was
// cut off is done again; what a person has removed does not matter any more.
func TestMoveAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if n := read(t, dir); n != nil {
		t.Fatalf("a whole server has the note %+v", n)
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, text := range []string{"first", "second", "third"} {
		at := now.Add(time.Duration(i) * 48 * time.Hour)
		put(t, dir, text)
		if before := damaged.Before(dir, at); before != "" {
			t.Errorf("at %s there is %s", at, before)
		}
		n := &damaged.Note{Time: at, File: "db", Problem: "cut off"}
		cut := *n
		cut.Kept = "etcd.damaged-cut" // as far as it came when it was cut off
		if err := cut.Write(dir); err != nil || read(t, dir) != nil {
			t.Errorf("a move that was cut off is taken for done: %v, %+v", err, read(t, dir))
		}
		if err := n.MoveAside(dir, at); err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join(dir, n.Kept, "db"))
		if err != nil || string(kept) != text || read(t, dir) == nil {
			t.Errorf("kept is %q, and noted %+v: %v", kept, read(t, dir), err)
		}
		if before := damaged.Before(dir, at.Add(time.Hour)); before != filepath.Join(dir, n.Kept) {
			t.Errorf("an hour later there is %q", before)
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "etcd.damaged-*"))
	if err != nil || len(all) != 2 {
		t.Errorf("kept are %v: %v", all, err)
	}
	for _, kept := range all {
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
	}
	if n := read(t, dir); n != nil {
		t.Errorf("after they were removed there is the note %+v", n)
	}
}

// TestMended: a member that runs on its files has no damage; that of files that were moved aside stays.
func TestMended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := &damaged.Note{Time: time.Now(), Problem: "etcd ended"}
	if err := n.Write(dir); err != nil || read(t, dir) == nil {
		t.Fatal(err)
	}
	if err := damaged.Mended(dir); err != nil || read(t, dir) != nil {
		t.Errorf("%v: %+v", err, read(t, dir))
	}
	put(t, dir, "bad")
	if err := n.MoveAside(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := damaged.Mended(dir); err != nil || read(t, dir) == nil {
		t.Errorf("%v: %+v", err, read(t, dir))
	}
}
