package intact

import (
	"os"
	"path/filepath"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestFiles: a file that somebody emptied, changed, closed or removed is not as it was.
func TestFiles(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"as it was": func(string) error { return nil },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"changed":   func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
		"closed":    func(path string) error { return os.Chmod(path, 0) },
		"removed":   os.Remove,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "keyring")
		if err := os.WriteFile(path, []byte("key"), 0o600); err != nil {
			t.Fatal(err)
		}
		spec := []api.DaemonFile{{Path: "keyring"}, {Path: "missing"}}
		before := Of(dir, spec)
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if same := before.Are(Of(dir, spec)); same != (name == "as it was") {
			t.Errorf("%s: as it was: %v", name, same)
		}
	}
}
