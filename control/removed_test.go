package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
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

// TestSetAside_cut cuts off what is done with the data of a lost seat before each effect, and then does it again: what was filled is whole all
// along, and in the end all is where it would be without the cut.
func TestSetAside_cut(t *testing.T) {
	for _, filled := range []bool{true, false} {
		cuts := 0
		for ; ; cuts++ {
			d := dataDir(t.TempDir())
			write := func(dir string, content string) {
				t.Helper()
				path := filepath.Join(dir, "member", "wal", "0.wal")
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for g := range 5 {
				write(d.file(fmt.Sprint("etcd.removed/generation-", g)), "old")
			}
			write(d.etcd(), "new")
			restore := atomicfile.Cut(string(d), cuts)
			err := d.setAside(4, filled)
			cut := restore()
			if cut != errors.Is(err, atomicfile.ErrCut) {
				t.Fatalf("cut before effect %d: %v, %v", cuts, cut, err)
			}
			want := map[bool]string{true: "new", false: "old"}[filled]
			if got := []string{logIn(d.etcd()), logIn(d.file("etcd.removed/generation-4"))}; !slices.Contains(got, want) {
				t.Errorf("cut before effect %d: there is %q, not what was filled: %q", cuts, got, want)
			}
			if err := errors.Join(d.clearLeft(), d.setAside(4, filled)); err != nil {
				t.Fatal(err)
			}
			if got := logIn(d.file("etcd.removed/generation-4")); got != want || !missing(d.etcd()) || !missing(d.discarded()) {
				t.Errorf("cut before effect %d, and done again: there is %q", cuts, got)
			}
			if !cut {
				break
			}
		}
		if cuts < 4 {
			t.Errorf("it was cut %d times", cuts)
		}
	}
}

// logIn is what the log of a database holds; empty where there is none.
func logIn(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "member", "wal", "0.wal"))
	return string(text)
}
