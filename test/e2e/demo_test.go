package e2e

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDemo runs what a newcomer runs: the demo, which applies its example, writes data and reads it back, and its removal.
func TestDemo(t *testing.T) {
	begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, "../../bin/demo", args...)
		// It is asked to end, so that it can leave its hosts in order.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.Dir, cmd.Path = "../..", "bin/demo"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("demo %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { exec.Command("../../bin/demo", "down").Run() })
	out := run("up")
	for _, want := range []string{"storagecluster/ceph created", "ONLINE", "health: HEALTH_OK", "read on h3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what the demo shows:\n%s", want, out)
		}
	}
	if out := run("sh", "h2", "holdfast", "get", "storagestatus"); !strings.Contains(out, "HEALTH_OK") {
		t.Errorf("on host h2: %s", out)
	}
	if out := run("down"); !strings.Contains(out, "no process, mount, loop device, namespace or file of it is left") {
		t.Errorf("demo down: %s", out)
	}
}
