package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// A link is made in the place of whatever file is there, also of what an earlier try has left, and is left alone where it leads there already.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link")
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"/one", "/two", "/two"} {
		if err := atomicfile.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		if have, err := os.Readlink(path); err != nil || have != to {
			t.Errorf("it leads to %q, %v", have, err)
		}
	}
	onlyFile(t, path)
	end := atomicfile.Watch("", func(func() error) error { return errors.New("touched") })
	defer end()
	if err := atomicfile.Symlink("/two", path); err != nil {
		t.Error(err)
	}
	if err := atomicfile.Symlink("/three", path); err == nil {
		t.Error("a guard of all there is was not passed")
	}
}

func TestMkdirAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Remove(filepath.Join(dir, "none", "none")); err != nil {
		t.Errorf("what has no directory is gone: %v", err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st, err)
	}
}
