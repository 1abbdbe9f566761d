package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Destroy removes the lab in dir and all that belongs to it, also one that another program made and left, and names what
// it could not remove. A lab that is not there is no error.
func Destroy(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("while finding the lab's directory: %w", err)
	}
	s, err := readState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Each step is tried, whatever became of those before it.
	err = errors.Join(killAll(s), removeCgroups("/"+s.Prefix), removeLinks(s.Prefix), unmountAll(dir), detachAll(dir))
	if err != nil {
		return fmt.Errorf("while removing the lab in %s: %w", dir, err)
	}
	// The state goes last: as long as anything is left, the lab can be found.
	if err := removeTree(dir); err != nil {
		return fmt.Errorf("while removing the lab in %s: %w", dir, err)
	}
	_ = os.Remove(labsDir()) // succeeds when this was the last lab
	return nil
}

func killAll(s state) error {
	var group errgroup.Group
	for _, h := range s.Hosts {
		group.Go(func() error {
			if err := kill(h.Init); err != nil {
				return fmt.Errorf("while switching off host %s: %w", h.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func removeLinks(prefix string) error {
	names, err := links(prefix)
	for _, name := range names {
		err = errors.Join(err, removeLink(name))
	}
	return err
}

func unmountAll(dir string) error {
	points, err := mounts(dir)
	// The last one mounted may lie on an earlier one.
	for i := len(points) - 1; i >= 0; i-- {
		if e := unix.Unmount(points[i], 0); e != nil {
			err = errors.Join(err, fmt.Errorf("while unmounting %s: %w", points[i], e))
		}
	}
	return err
}

func detachAll(dir string) error {
	var err error
	for loop, file := range loops(dir) {
		if e := detachLoop(loop, file); e != nil {
			err = errors.Join(err, fmt.Errorf("while detaching %s: %w", loop, e))
		}
	}
	return err
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != stateFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// mounts lists the machine's mounts at or below dir.
func mounts(dir string) ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return nil, fmt.Errorf("while listing the mounts: %w", err)
	}
	var out []string
	for _, m := range infos {
		out = append(out, m.Mountpoint)
	}
	return out, nil
}

// Leftovers fails the test if anything of the lab is still there, and names it. It is for labs that have been destroyed;
// New sees to it.
func (l *Lab) Leftovers(t T) {
	t.Helper()
	left, err := leftovers(l.Dir, l.state)
	if err != nil {
		t.Errorf("hosts: while looking for leftovers: %v", err)
	}
	for _, what := range left {
		t.Errorf("hosts: left behind: %s", what)
	}
}

func leftovers(dir string, s state) ([]string, error) {
	left := processes(s)
	points, err := mounts(dir)
	for _, p := range points {
		left = append(left, "mount at "+p)
	}
	for loop, file := range loops(dir) {
		left = append(left, fmt.Sprintf("loop device %s on %s", loop, file))
	}
	names, e := links(s.Prefix)
	for _, name := range names {
		left = append(left, "network interface "+name)
	}
	groups, e2 := cgroups("/" + s.Prefix)
	for _, group := range groups {
		left = append(left, "control group "+group)
	}
	named, _ := filepath.Glob("/run/netns/" + s.Prefix + "*")
	for _, file := range named {
		left = append(left, "network namespace "+file)
	}
	if _, err := os.Lstat(dir); err == nil {
		left = append(left, "directory "+dir)
	}
	sort.Strings(left)
	return left, errors.Join(err, e, e2)
}

// processes finds the lab's processes by what Command puts into their environment, and its first processes by their PIDs.
func processes(s state) []string {
	var left []string
	for _, h := range s.Hosts {
		if h.Init.alive() {
			left = append(left, fmt.Sprintf("first process of host %s (%d)", h.Name, h.Init.PID))
		}
	}
	mark := []byte("\x00" + labVariable + "=" + s.Prefix + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file) // empty for a zombie
		pid := filepath.Base(filepath.Dir(file))
		if err != nil || pid == strconv.Itoa(os.Getpid()) || !bytes.Contains(append([]byte{0}, env...), mark) {
			continue
		}
		args, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		left = append(left, fmt.Sprintf("process %s: %s", pid, strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))))
	}
	return left
}
