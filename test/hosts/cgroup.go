package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Cgroup is the path of the host's own control group below the root of each hierarchy. With
// Options.Cgroup it is there while the host has power, empty at first, and goes with all below it:
// what a dead machine had would be in the way of the next start of a kubelet.
func (h *Host) Cgroup() string { return "/" + h.lab.state.Prefix + "/" + h.Name }

// hierarchies are the roots of the machine's hierarchies of control groups: one for each
// controller, or a single one.
func hierarchies() (roots []*mountinfo.Info, err error) {
	roots, err = mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("while listing the hierarchies of control groups: %w", err)
	}
	return roots, nil
}

// makeCgroup makes the host's control group, if it has one.
func (h *Host) makeCgroup() error {
	if !h.lab.state.Cgroup {
		return nil
	}
	roots, err := hierarchies()
	for _, root := range roots {
		for _, path := range []string{filepath.Dir(h.Cgroup()), h.Cgroup()} {
			dir := filepath.Join(root.Mountpoint, path)
			if e := os.Mkdir(dir, 0o755); e != nil && !errors.Is(e, fs.ErrExist) {
				err = errors.Join(err, fmt.Errorf("while making a control group for host %s: %w", h.Name, e))
			}
			switch {
			case root.FSType == "cgroup":
				err = errors.Join(err, giveCPUs(dir))
			case len(roots) == 1:
				err = errors.Join(err, passControllers(dir))
			}
		}
	}
	return err
}

// giveCPUs lets a group of version 1 run on what its parent runs on. Without that nothing can run
// in it.
func giveCPUs(dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(bytes.TrimSpace(own)) > 0 {
			continue // not a hierarchy of this controller, or another host of the lab has done it
		}
		parents, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), parents, 0)
		}
		if err != nil {
			return fmt.Errorf("while giving a control group its processors: %w", err)
		}
	}
	return nil
}

// passControllers lets a group of version 2 have all controllers of its parent. Beside hierarchies of
// version 1 there is no need to.
func passControllers(dir string) error {
	parent := filepath.Dir(dir)
	names, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err == nil && len(bytes.Fields(names)) > 0 {
		all := "+" + strings.Join(strings.Fields(string(names)), " +")
		err = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte(all), 0)
	}
	if err != nil {
		return fmt.Errorf("while giving a control group its controllers: %w", err)
	}
	return nil
}

// cgroups lists all control groups at and below a path, parents first.
func cgroups(path string) (dirs []string, err error) {
	roots, err := hierarchies()
	for _, root := range roots {
		e := filepath.WalkDir(filepath.Join(root.Mountpoint, path), func(dir string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, dir)
			}
			return err
		})
		if !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return dirs, err
}

// removeCgroups removes all control groups at and below a path. The last processes may still be
// leaving them.
func removeCgroups(path string) error {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		dirs, err := cgroups(path)
		for _, dir := range slices.Backward(dirs) {
			if e := unix.Rmdir(dir); e != nil && !errors.Is(e, unix.ENOENT) {
				err = errors.Join(err, fmt.Errorf("while removing the control group %s: %w", dir, e))
			}
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
