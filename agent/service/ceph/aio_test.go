package ceph

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAllowAIO: what is too little is raised, what an administrator has set higher stays.
func TestAllowAIO(t *testing.T) {
	for was, want := range map[string]string{"65536\n": "1048576", "1048576\n": "1048576\n", "4194304\n": "4194304\n", "?": "?"} {
		file := filepath.Join(t.TempDir(), "aio-max-nr")
		if err := os.WriteFile(file, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		allowAIO(file)
		if is, err := os.ReadFile(file); err != nil || string(is) != want {
			t.Errorf("%q became %q, %v; want %q", was, is, err, want)
		}
	}
	allowAIO(filepath.Join(t.TempDir(), "missing"))
}
