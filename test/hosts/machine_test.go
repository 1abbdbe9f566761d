package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestMachine shows what hosts have that start containers: mounts that propagate, and control groups
// that go with the power, whatever is in them.
func TestMachine(t *testing.T) {
	lab := New(t, Options{Machine: Machine{Shared: true, Cgroup: true}})
	h := lab.Host(1)
	script := `mkdir /var/inner && unshare --mount --propagation unchanged mount -t tmpfs inner /var/inner &&
		grep ' /var/inner ' /proc/mounts | wc -l && grep -c inner /proc/mounts`
	if seen := h.Run(t, t.Context(), "sh", "-c", script); seen != "1\n1" {
		t.Errorf("what was mounted in a namespace of its own shows %q times", seen)
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

// TestPassControllers tries what a machine needs that has control groups of version 2 alone. Here it may
// have hardly any controllers.
func TestPassControllers(t *testing.T) {
	roots, err := hierarchies()
	i := slices.IndexFunc(roots, func(r *mountinfo.Info) bool { return r.FSType == "cgroup2" })
	if err != nil || i < 0 {
		t.Fatalf("there is no hierarchy of version 2 in %v (%v)", roots, err)
	}
	root := roots[i].Mountpoint
	dir := filepath.Join(root, filepath.Base(t.TempDir())+"-holdfast-test")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	switchable := filepath.Join(root, "cgroup.subtree_control")
	before := words(t, switchable)
	t.Cleanup(func() {
		for _, name := range words(t, switchable) {
			if !slices.Contains(before, name) {
				_ = os.WriteFile(switchable, []byte("-"+name), 0)
			}
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := passControllers(dir); err != nil {
		t.Fatal(err)
	}
	want, got := words(t, filepath.Join(root, "cgroup.controllers")), words(t, filepath.Join(dir, "cgroup.controllers"))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the group has the controllers %v, and its parent %v", got, want)
	}
}

func words(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}
