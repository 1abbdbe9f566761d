package e2e

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// holdfast runs a command on the first host, which must end with this exit code, and returns what it wrote.
func (b *bed) holdfast(code int, args ...string) string {
	b.Helper()
	out, got := b.holdfastSays(args...)
	if got != code {
		b.Fatalf("holdfast %v ended with %d, want %d:\n%s", args, got, code, out)
	}
	return out
}

// waitLimit bounds a command that waits for something itself, at most five minutes.
const waitLimit = 6 * time.Minute

// holdfastSays runs the command on a host, and returns what it printed and its exit code.
func (b *bed) holdfastSays(args ...string) (string, int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	out, err := b.Lab.Host(1).Command(ctx, b.Binary, args...).CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		b.Fatalf("holdfast %v: %v", args, err)
	}
	b.Logf("holdfast %s:\n%s", strings.Join(args, " "), out)
	return string(out), code
}

// TestHostCommands takes a host out of service and puts it back by the commands that a person uses, with a real Ceph, which
// refuses the second one.
func TestHostCommands(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	b.ceph("osd", "pool", "create", "data", "8")
	b.ceph("osd", "pool", "application", "enable", "data", "test")
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	one, two := b.Lab.Host(1).Name, b.Lab.Host(2).Name

	out := b.holdfast(0, "host", "label", one, two, "--location", "region=eu,rack=r1")
	out += b.holdfast(0, "host", "list", "-o", "wide")
	if !strings.Contains(out, "eu/r1") {
		t.Errorf("the location is not shown:\n%s", out)
	}
	b.holdfast(0, "host", "maintenance", "enter", two, "--reason", "a new fan", "--wait", "--timeout", "3m")
	if left := b.runsOn(2); len(left) > 0 {
		t.Errorf("in maintenance there run %v", left)
	}
	refused := b.holdfast(3, "host", "maintenance", "enter", one, "--wait", "--timeout", "3m")
	for _, reason := range []string{"mon.", "the control plane would have no quorum (these servers are disconnected, removed or in maintenance: " + two + ")"} {
		if !strings.Contains(refused, reason) {
			t.Errorf("the refusal does not name %q:\n%s", reason, refused)
		}
	}
	for _, h := range list[api.Host](b, "hosts") {
		if h.Name == one && h.ModeOf() != api.HostActive {
			t.Errorf("host %s was refused and is in mode %s", one, h.ModeOf())
		}
	}
	b.holdfast(0, "host", "maintenance", "exit", two, "--wait", "--timeout", "5m")
	b.await("Ceph to be well again", func() error { return b.health(3, 3) })
	b.noOrphans()
}
