package pod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Process is one that a pod has on the host.
type Process struct {
	PID, Parent int
	// Started is when it was started, in ticks of the kernel's clock.
	Started uint64
	// Container is the id of its container.
	Container string
}

// processesOf finds the processes of a pod by their cgroups, which have its UID in their names,
// whatever driver and version of cgroups the kubelet uses. It takes an agent that sees the
// processes of the host. What ends or begins meanwhile may be missing, so nothing counts as nothing
// when two looks have found it.
func processesOf(proc string, uid types.UID) ([]Process, error) {
	found, err := scan(proc, uid)
	if err == nil && len(found) == 0 {
		found, err = scan(proc, uid)
	}
	if err != nil {
		return nil, fmt.Errorf("while looking for the processes of pod %s: %w", uid, err)
	}
	return found, nil
}

func scan(proc string, uid types.UID) ([]Process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, ok, err := look(proc, pid, uid)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// look reads one process. One that has ended meanwhile is none.
func look(proc string, pid int, uid types.UID) (p Process, ok bool, err error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return p, false, unlessEnded(err)
	}
	container, ok := containerIn(string(groups), uid)
	if !ok {
		return p, false, nil
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, false, unlessEnded(err)
	}
	p, alive, err := parseStat(string(stat))
	p.PID, p.Container = pid, container
	return p, alive, err
}

func unlessEnded(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// containerIn reads the cgroups of a process: lines such as
//
//	0::/kubepods/burstable/pod2c4e…/0123…                               version 2
//	4:memory:/kubepods.slice/kubepods-pod2c4e_….slice/cri-containerd-0123….scope   version 1, systemd
//
// Only what lies below the pod's own group counts. container is what is named next below it.
func containerIn(groups string, uid types.UID) (container string, ok bool) {
	names := []string{"pod" + string(uid), "pod" + strings.ReplaceAll(string(uid), "-", "_")}
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		path := strings.Split(parts[2], "/")
		i := slices.IndexFunc(path, func(e string) bool {
			e = strings.TrimSuffix(e, ".slice")
			return slices.ContainsFunc(names, func(n string) bool { return e == n || strings.HasSuffix(e, "-"+n) })
		})
		if i < 0 {
			continue
		}
		if i+1 < len(path) {
			container = path[i+1]
		}
		return container, true
	}
	return "", false
}

// parseStat reads /proc/PID/stat (proc(5)). A process of which only the zombie is left is not
// alive; a zombie with threads is, as one of them may hang in a disk.
func parseStat(text string) (p Process, alive bool, err error) {
	_, rest, found := cutLast(text, ") ")
	f := strings.Fields(rest)
	if !found || len(f) < 20 {
		return p, false, fmt.Errorf("unknown form of /proc/PID/stat: %.80q", text)
	}
	parent, err1 := strconv.Atoi(f[1])
	threads, err2 := strconv.Atoi(f[17])
	started, err3 := strconv.ParseUint(f[19], 10, 64)
	ended := (f[0] == "Z" || f[0] == "X") && threads <= 1
	return Process{Parent: parent, Started: started}, !ended, errors.Join(err1, err2, err3)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// mainOf is the process that a container was started as: the oldest of those whose parent is
// outside of it. Others come to such a parent when theirs ends. id is as in the pod's status,
// "containerd://0123…"; 0 is none.
func mainOf(all []Process, id string) int {
	_, id, _ = strings.Cut(id, "://")
	in := slices.DeleteFunc(slices.Clone(all), func(p Process) bool {
		return id == "" || !strings.Contains(p.Container, id)
	})
	first := Process{}
	for _, p := range in {
		inside := slices.ContainsFunc(in, func(o Process) bool { return o.PID == p.Parent })
		if !inside && (first.PID == 0 || p.Started < first.Started) {
			first = p
		}
	}
	return first.PID
}
