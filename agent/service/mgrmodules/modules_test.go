package mgrmodules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service/mgrmodules"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/orch/module"
)

// modules are the entries of the directory, and where those lead to that are links.
func modules(t *testing.T, data string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, module.Dir))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()], _ = os.Readlink(filepath.Join(data, module.Dir, e.Name())) // empty for what is no link
	}
	return all
}

const packages = "/usr/share/ceph/mgr"

// rootWith makes a root where the packages of Ceph have these modules.
func rootWith(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(root, packages, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestMake: the directory shows what the packages have now, beside the module of 'ceph orch', and is right whatever
// moment an earlier attempt was cut off at.
func TestMake(t *testing.T) {
	root := rootWith(t, "iostat", "nfs", "selftest", "test_orchestrator", "__pycache__")
	for after := 0; ; after++ {
		data := t.TempDir()
		restore := atomicfile.Cut(data, after)
		err := mgrmodules.Make(root, data, "/run/x")
		cut := restore()
		if !cut && err != nil {
			t.Fatal(err)
		}
		if err := mgrmodules.Make(root, data, "/run/x"); err != nil {
			t.Fatalf("after %d steps: %v", after, err)
		}
		got := modules(t, data)
		if len(got) != 4 || got["iostat"] != packages+"/iostat" || got["nfs"] != packages+"/nfs" {
			t.Errorf("after %d steps: %v", after, got)
		}
		var peer module.Peer
		text, err := os.ReadFile(filepath.Join(data, module.Dir, module.PeerFile))
		if err != nil || json.Unmarshal(text, &peer) != nil || peer.Socket != "/run/x/orch.sock" {
			t.Errorf("after %d steps: %s, %v", after, text, err)
		}
		if !cut {
			break
		}
	}
}

// TestMake_packagesChange: a module that the packages no longer have goes, and one that is new comes.
func TestMake_packagesChange(t *testing.T) {
	data, before := t.TempDir(), rootWith(t, "iostat", "restful")
	for _, root := range []string{before, rootWith(t, "iostat", "smb")} {
		if err := mgrmodules.Make(root, data, "/run/x"); err != nil {
			t.Fatal(err)
		}
	}
	got := modules(t, data)
	if _, there := got["restful"]; there || got["smb"] == "" || len(got) != 4 {
		t.Errorf("%v", got)
	}
	if err := mgrmodules.Make(filepath.Join(before, "nowhere"), data, "/run/x"); err == nil {
		t.Error("no error without packages")
	}
}
