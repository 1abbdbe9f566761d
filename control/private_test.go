package control_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/private"
)

// openModes lets everybody read some of what holds keys.
func openModes(t *testing.T, dir string, modes map[string]fs.FileMode) {
	t.Helper()
	for name, mode := range modes {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func exposedNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := private.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		names = append(names, strings.TrimPrefix(one.Path, dir+"/"))
	}
	return names
}

// TestStart_exposedKeys: keys that others may read are set right at the start, and told.
func TestStart_exposedKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newConfig(t, dir, "exposed")
	c.Init = true
	_, stop := start(t, c)
	stop()
	if names := exposedNames(t, dir); len(names) > 0 {
		t.Fatalf("a new server lets others read %v", names)
	}
	wrong := map[string]fs.FileMode{
		"pki": 0o755, "pki/ca.key": 0o644, "pki/etcd.key": 0o640, "host": 0o711, "host/host.key": 0o604,
		"admin.kubeconfig": 0o666, "etcd": 0o755,
	}
	openModes(t, dir, wrong)
	if names := exposedNames(t, dir); len(names) != len(wrong) {
		t.Fatalf("found %v, want %v", names, wrong)
	}
	log := &buffer{}
	c.Init, c.Log = false, slog.New(slog.NewTextHandler(log, nil))
	start(t, c)
	if names := exposedNames(t, dir); len(names) > 0 {
		t.Errorf("after the start others may read %v", names)
	}
	all := strings.Join(log.lines(), "\n")
	if !strings.Contains(all, "private keys of this machine were open to other users") || !strings.Contains(all, "found=7") {
		t.Errorf("the start says nothing of it:\n%s", all)
	}
}

// TestAgent_exposedKeys: the same of an agent's.
func TestAgent_exposedKeys(t *testing.T) {
	s, _ := sharedServer(t)
	dir := t.TempDir()
	if err := joinAgent(t, dir, "exposed-agent", newToken(t, s, join.RoleAgent)); err != nil {
		t.Fatal(err)
	}
	openModes(t, dir, map[string]fs.FileMode{"host": 0o755, "host/host.key": 0o644})
	if err := joinAgent(t, dir, "", ""); err != nil {
		t.Fatal(err)
	}
	if names := exposedNames(t, dir); len(names) > 0 {
		t.Errorf("after the start others may read %v", names)
	}
}

// TestPrivate_foreign: what belongs to somebody else is his to read; links and what is missing
// are left alone.
func TestPrivate_foreign(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "pki", "ca.key")
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "pki", "link")); err != nil {
		t.Fatal(err)
	}
	if names := exposedNames(t, dir); len(names) > 0 {
		t.Errorf("found %v", names)
	}
	if os.Geteuid() != 0 {
		t.Skip("root alone can give a file away")
	}
	if err := os.Chown(key, 1, -1); err != nil {
		t.Fatal(err)
	}
	if names := exposedNames(t, dir); len(names) != 1 || names[0] != "pki/ca.key" {
		t.Errorf("found %v, want the key of another user", names)
	}
}
