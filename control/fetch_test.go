package control

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNameNew: a file gets its name and overwrites nothing, also where the file system knows no rename that keeps what is there.
func TestNameNew(t *testing.T) {
	t.Parallel()
	for name, rename := range map[string]func(old, path string) error{
		"at once":              renameNew,
		"in two steps, EINVAL": func(string, string) error { return unix.EINVAL },
		"in two steps, ENOSYS": func(string, string) error { return unix.ENOSYS },
	} {
		dir := t.TempDir()
		first, second, path := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "backup")
		if err := errors.Join(os.WriteFile(first, []byte("first"), 0o600), os.WriteFile(second, []byte("second"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := nameNew(first, path, rename); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := nameNew(second, path, rename); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the name is taken: %v", name, err)
		}
		if text, err := os.ReadFile(path); string(text) != "first" {
			t.Errorf("%s: it holds %q, %v", name, text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "b")
	for _, rename := range []func(old, path string) error{renameNew, func(string, string) error { return unix.EINVAL }} {
		if err := nameNew("none", path, rename); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("a file that is not there: %v", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("what could not be written has left a file")
		}
	}
}
