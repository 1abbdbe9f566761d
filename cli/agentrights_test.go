package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgentRights: an agent whose pod lacks a right says which one, and where it is set, instead of
// reporting a node without disks.
func TestAgentRights(t *testing.T) {
	for _, tt := range []struct {
		effective string
		self      int
		want      string
	}{
		{"000001ffffffffff", 4711, ""},
		{"000001fffeffffff", 4711, ""},                                  // as on CI's machines
		{"00000000a80425fb", 4711, "the agent's pod is not privileged"}, // a container's as containerd makes it
		{"0000000000000000", 4711, "securityContext.privileged"},
		{"000001ffffffffff", 1, "set hostPID of the pod"},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "self"), 0o755); err != nil {
			t.Fatal(err)
		}
		status := "Name:\tholdfast\nCapPrm:\t000001ffffffffff\nCapEff:\t" + tt.effective + "\nCapBnd:\t000001ffffffffff\n"
		if err := os.WriteFile(filepath.Join(proc, "self", "status"), []byte(status), 0o600); err != nil {
			t.Fatal(err)
		}
		err := mayServe(proc, tt.self)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("with %s as process %d: %v, want %q", tt.effective, tt.self, err, tt.want)
		}
	}
}
