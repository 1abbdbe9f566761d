package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

func TestWrite_replacesContentAndPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, w := range []struct {
		data string
		perm fs.FileMode
	}{{"one", 0o644}, {"two", 0o600}, {"", 0o640}} {
		if err := atomicfile.Write(path, []byte(w.data), w.perm); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != w.data || info.Mode().Perm() != w.perm {
			t.Errorf("got %q, mode %v, want %q, mode %v", got, info.Mode().Perm(), w.data, w.perm)
		}
	}
	onlyFile(t, path)
}

func TestWrite_failureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := atomicfile.Write(filepath.Join(dir, "missing", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: got %v, want %v", err, fs.ErrNotExist)
	}
	// A directory stands where the file shall go, so that the rename fails after the temporary file was written.
	path := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(path, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("x"), 0o600); err == nil {
		t.Error("writing over a directory: got no error")
	}
	onlyFile(t, path)
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("directory holds %v, want only %s", entries, filepath.Base(path))
	}
}
