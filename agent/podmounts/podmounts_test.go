package podmounts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHasOfNode: an agent whose pod has a directory of its own in the place of one of the node's says
// which one, and what to mount.
func TestHasOfNode(t *testing.T) {
	for _, tt := range []struct{ own, propagation, want string }{
		{"", "shared:7", ""},
		{"", "shared:7 master:1", ""},
		{"dev", "shared:7", "dev in the agent's pod is not the node's"},
		{"dev", "shared:7", "mount the hostPath"},
		{"data", "shared:7", "data in the agent's pod is not the node's"},
		{"run", "shared:7", "run in the agent's pod is not the node's"},
		{"", "master:7", "set mountPropagation: Bidirectional"},
		{"", "", "set mountPropagation: Bidirectional"},
	} {
		proc, pod := t.TempDir(), t.TempDir()
		at := map[string]string{}
		for _, name := range []string{"dev", "data", "run"} {
			at[name] = filepath.Join(pod, name)
			there := filepath.Join(proc, "1", "root", at[name])
			mustMake(t, os.MkdirAll(filepath.Dir(there), 0o755))
			mustMake(t, os.Mkdir(at[name], 0o755))
			if name == tt.own {
				mustMake(t, os.Mkdir(there, 0o755))
			} else {
				mustMake(t, os.Symlink(at[name], there)) // stands for a bind mount
			}
		}
		mustMake(t, os.Mkdir(filepath.Join(proc, "self"), 0o755))
		table := fmt.Sprintf("1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / %s rw,nosuid %s - ext4 /dev/vda rw\n"+
			"3 1 0:3 / %s/other rw shared:9 - tmpfs tmpfs rw\n", at["data"], tt.propagation, at["data"])
		mustMake(t, os.WriteFile(filepath.Join(proc, "self", "mountinfo"), []byte(table), 0o600))
		err := HasOfNode(proc, at["dev"], at["data"], at["run"])
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("own %q, %q: %v, want %q", tt.own, tt.propagation, err, tt.want)
		}
	}
	proc := t.TempDir()
	mustMake(t, os.Mkdir(filepath.Join(proc, "1"), 0o755))
	mustMake(t, os.Symlink("/", filepath.Join(proc, "1", "root")))
	if err := HasOfNode(proc, "/dev", "/not/made/yet", "/not/made/yet"); err != nil {
		t.Errorf("an agent that runs in no pod: %v", err)
	}
	if !handsOn("1 0 0:1 / / rw shared:1 - ext4 /dev/vda rw\n", "/var/lib/holdfast") {
		t.Error("what lies on the root of the node is not handed on")
	}
}

func mustMake(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
