package gluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLink(t *testing.T) {
	dir := t.TempDir()
	path, to, other := filepath.Join(dir, "link"), filepath.Join(dir, "socket"), filepath.Join(dir, "other")
	for _, test := range []struct {
		name    string
		prepare func() error
		want    string // where the link leads; empty when it is none
	}{
		{"nothing is there", func() error { return nil }, to},
		{"it is there, and glusterd has not started", func() error { return os.Symlink(to, path) }, to},
		{"another pool's that is gone", func() error { return os.Symlink(filepath.Join(dir, "gone"), path) }, to},
		{"another pool's", func() error { return os.Symlink(other, path) }, other},
		{"the package's own", func() error { return os.WriteFile(path, nil, 0o600) }, ""},
	} {
		os.Remove(path)
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := test.prepare(); err != nil {
			t.Fatal(err)
		}
		if err := link(path, to); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got, _ := os.Readlink(path); got != test.want {
			t.Errorf("%s: it leads to %q, want %q", test.name, got, test.want)
		}
	}
}
