package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMachine shows what hosts have that start containers: mounts that propagate, a default route, and
// control groups that go with the power, whatever is in them.
func TestMachine(t *testing.T) {
	lab := New(t, Options{Machine: Machine{Shared: true, Route: true, Cgroup: true}})
	h := lab.Host(1)
	script := `mkdir /var/inner && unshare --mount --propagation unchanged mount -t tmpfs inner /var/inner &&
		grep ' /var/inner ' /proc/mounts | wc -l && grep -c inner /proc/mounts`
	if seen := h.Run(t, t.Context(), "sh", "-c", script); seen != "1\n1" {
		t.Errorf("what was mounted in a namespace of its own shows %q times", seen)
	}
	if route := h.Run(t, t.Context(), "ip", "route", "show", "default"); !strings.Contains(route, lab.Gateway) {
		t.Errorf("the default route is %q", route)
	}

	for _, dir := range groups(t, h) {
		below := filepath.Join(dir, "pods")
		if err := os.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	join := "for d in /sys/fs/cgroup/*" + h.Cgroup() + "; do echo $$ >$d/cgroup.procs; done; exec sleep infinity"
	h.Start(t, "sh", "-c", join)
	h.PowerOff(t)
	if left, err := cgroups(h.Cgroup()); err != nil || len(left) > 0 {
		t.Errorf("after the power has gone there are %v (%v)", left, err)
	}
	h.PowerOn(t)
	groups(t, h)
}

// groups are the host's own control groups, one in each hierarchy, without any below.
func groups(t *testing.T, h *Host) []string {
	t.Helper()
	roots, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := cgroups(h.Cgroup())
	if err != nil || len(dirs) != len(roots) {
		t.Fatalf("the host has the control groups %v (%v)", dirs, err)
	}
	return dirs
}
