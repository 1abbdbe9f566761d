package control

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetAside: of each generation the last database that was filled is kept, of the last three generations; and it may be repeated.
func TestSetAside(t *testing.T) {
	d := dataDir(t.TempDir())
	lose := func(generation int64, content string, filled bool) {
		t.Helper()
		wal := filepath.Join(d.etcd(), "member", "wal")
		if err := os.MkdirAll(wal, 0o700); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if err := os.WriteFile(filepath.Join(wal, "0.wal"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := d.setAside(generation, filled); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(d.etcd()); err == nil {
			t.Fatal("the database is still in its place")
		}
	}
	kept := func() map[string]string {
		found := map[string]string{}
		paths, err := filepath.Glob(d.file("etcd.removed/*/member/wal/0.wal"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := filepath.Rel(d.file("etcd.removed"), path)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Dir(filepath.Dir(filepath.Dir(dir)))] = string(text)
		}
		return found
	}
	lose(0, "before the restore", true)
	lose(900, "after it", true)
	if diff := cmp.Diff(map[string]string{"generation-0": "before the restore", "generation-900": "after it"}, kept()); diff != "" {
		t.Errorf("a restore later (-want +got):\n%s", diff)
	}
	lose(900, "later", true)
	lose(900, "", true) // a seat that was given, and its server ended before it began
	lose(900, "a member that began, and was never filled", false)
	for g := range int64(2) {
		lose(1000+g, fmt.Sprint(g), g == 0) // the first of a generation has nobody's place
	}
	want := map[string]string{"generation-900": "later", "generation-1000": "0", "generation-1001": "1"}
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
