package pod

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

const uid = types.UID("2c4e8a11-0b1d-4f6e-9d1f-0123456789ab")

// The cgroups of processes of pods, with both versions of cgroups and both drivers of the kubelet.
func TestContainerIn(t *testing.T) {
	under := strings.ReplaceAll(string(uid), "-", "_")
	for name, tt := range map[string]struct {
		groups, container string
		ok                bool
	}{
		"version 2, cgroupfs": {"0::/kubepods/burstable/pod" + string(uid) + "/abc\n", "abc", true},
		"version 2, systemd": {
			"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under + ".slice/cri-containerd-abc.scope\n",
			"cri-containerd-abc.scope", true,
		},
		"version 2, guaranteed, systemd": {
			"0::/kubepods.slice/kubepods-pod" + under + ".slice/crio-abc.scope\n", "crio-abc.scope", true,
		},
		"version 2, seen from another cgroup": {"0::/../../pod" + string(uid) + "/abc\n", "abc", true},
		"version 1, cgroupfs": {
			"12:pids:/kubepods/pod" + string(uid) + "/abc\n11:memory:/kubepods/pod" + string(uid) + "/abc\n1:name=systemd:/x\n",
			"abc", true,
		},
		"version 1, a node's own root": {
			"5:cpu,cpuacct:/\n4:memory:/lab/n1/kubepods/pod" + string(uid) + "/abc\n", "abc", true,
		},
		"below the container": {"0::/kubepods/pod" + string(uid) + "/abc/init.scope\n", "abc", true},
		"no container":        {"0::/kubepods/pod" + string(uid) + "\n", "", true},
		"of another pod":      {"0::/kubepods/pod1" + string(uid)[1:] + "/abc\n", "", false},
		"of a longer name":    {"0::/kubepods/pod" + string(uid) + "0/abc\n", "", false},
		"of the host":         {"0::/init.scope\n", "", false},
		"nothing":             {"", "", false},
	} {
		if got, ok := containerIn(tt.groups, uid); got != tt.container || ok != tt.ok {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// proc makes a /proc: each line is a PID, its parent, its state, its threads, when it started, and
// its container.
func proc(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, line := range append(lines, "1 0 S 1 1 -") {
		f := strings.Fields(line)
		const form = "%s (a) b (c) %s %s 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %s 0 %s 1 2 3\n"
		stat := fmt.Sprintf(form, f[0], f[2], f[1], f[3], f[4])
		groups := "0::/init.scope\n"
		if f[5] != "-" {
			groups = "0::/kubepods/pod" + string(uid) + "/" + f[5] + "\n"
		}
		place := filepath.Join(dir, f[0])
		if err := os.Mkdir(place, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"stat": stat, "cgroup": groups} {
			if err := os.WriteFile(filepath.Join(place, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "77"), 0o700); err != nil { // one that ends while it is looked at
		t.Fatal(err)
	}
	return dir
}

// The process of a container is the first of it, and neither one that came to a parent outside
// later, nor the pause process. What only the zombie is left of does not live; what hangs with a
// thread does.
func TestProcessesOf(t *testing.T) {
	dir := proc(t, "10 1 S 1 100 pause", "20 1 S 5 150 abc", "21 20 S 1 151 abc", "22 10 S 1 152 abc",
		"23 1 Z 1 140 abc", "24 1 Z 2 160 abc", "30 1 S 1 99 -")
	got, err := processesOf(dir, uid)
	if err != nil {
		t.Fatal(err)
	}
	want := []Process{
		{PID: 10, Parent: 1, Started: 100, Container: "pause"},
		{PID: 20, Parent: 1, Started: 150, Container: "abc"},
		{PID: 21, Parent: 20, Started: 151, Container: "abc"},
		{PID: 22, Parent: 10, Started: 152, Container: "abc"},
		{PID: 24, Parent: 1, Started: 160, Container: "abc"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for id, pid := range map[string]int{"containerd://abc": 20, "containerd://def": 0, "": 0} {
		if got := mainOf(got, id); got != pid {
			t.Errorf("process of %q: %d, want %d", id, got, pid)
		}
	}
	if none, err := processesOf(dir, "another"); err != nil || len(none) > 0 {
		t.Errorf("of another pod: %v, %v", none, err)
	}
	if _, err := processesOf(filepath.Join(dir, "none"), uid); err == nil {
		t.Error("without a /proc nothing is known")
	}
}

// The processes of a real cgroup are found, and nothing of them when they have ended.
func TestProcessesOf_real(t *testing.T) {
	pod := filepath.Join(hierarchy(t), "holdfast-test-"+strconv.Itoa(os.Getpid()), "pod"+string(uid))
	group := filepath.Join(pod, "abc")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ > "$0/cgroup.procs"; echo; sleep 1000 & wait`, group)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, dir := range []string{group, pod, filepath.Dir(pod)} {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	found, err := processesOf("/proc", uid)
	if err != nil || mainOf(found, "containerd://abc") != cmd.Process.Pid {
		t.Errorf("%+v, %v, want process %d", found, err, cmd.Process.Pid)
	}
	for _, p := range append(found, Process{PID: cmd.Process.Pid}) {
		_ = exec.Command("kill", "-9", strconv.Itoa(p.PID)).Run() // it may be the one that has ended
	}
	_ = cmd.Wait() // it was killed
	for range 50 {
		if found, err = processesOf("/proc", uid); err == nil && len(found) > 0 {
			_ = exec.Command("kill", "-9", strconv.Itoa(found[0].PID)).Run() // a child that came meanwhile
		}
	}
	if err != nil || len(found) > 0 {
		t.Errorf("when they have ended: %+v, %v", found, err)
	}
}

// hierarchy is a hierarchy of cgroups that a test may write to: the one of version 2, or that of a
// controller.
func hierarchy(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir
		}
	}
	t.Fatal("this machine has no cgroups in /sys/fs/cgroup")
	return ""
}
