package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// installed is the release on this host.
var installed program

// program is the release of an installed program, which is asked for it anew when its file is another one.
type program struct {
	mu   sync.Mutex
	file os.FileInfo
	text string
}

func (r *program) version(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, err := exec.LookPath("glusterd")
	if err != nil {
		return "", err
	}
	now, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if r.file != nil && os.SameFile(r.file, now) && r.file.ModTime().Equal(now.ModTime()) {
		return r.text, nil
	}
	text, err := Glusterd{}.Version(ctx)
	if err != nil {
		return "", err
	}
	r.file, r.text = now, text
	return text, nil
}

// outdated says whether glusterd or a process that it started runs a program that was replaced
// since, in its own root directory or, by the word of the runtime, together with all that is there.
func outdated(l *service.Local) (bool, error) {
	all, err := others(l)
	for _, p := range all {
		p.fd.Close()
	}
	if err != nil {
		return false, fmt.Errorf("while looking for the processes of glusterd: %w", err)
	}
	pids := []int{int(l.PID)}
	for _, p := range all {
		pids = append(pids, p.pid)
	}
	return l.Outdated || slices.ContainsFunc(pids, replaced), nil
}

// replaced says whether the file that a process runs is not the one that is there now under its
// name, as the process sees it: in a container another file has that name than on the host. One
// that was removed for good was not replaced, and of a process that ended there is nothing to say.
func replaced(pid int) bool {
	link, root := fmt.Sprintf("/proc/%d/exe", pid), fmt.Sprintf("/proc/%d/root", pid)
	name, err := os.Readlink(link)
	if err != nil {
		return false
	}
	runs, err := os.Stat(link)
	if err != nil {
		return false
	}
	// Where the process has its root directory in a mount namespace that it shares, the name begins
	// with that.
	if top, err := os.Readlink(root); err == nil && top != "/" {
		name = strings.TrimPrefix(name, top)
	}
	there, err := os.Stat(filepath.Join(root, strings.TrimSuffix(name, " (deleted)")))
	return err == nil && !os.SameFile(runs, there)
}

// dropOption takes an option out of the stored volumes, where glusterd reads it when it starts. Version 11 does not write nfs.disable
// any more, and nodes that have different texts of a volume reject each other (gluster/glusterfs#4016).
func dropOption(state, option string) error {
	if option == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(state, "vols", "*", "info"))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, dropLines(file, option+"="))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("while taking the option %s out of the stored volumes: %w", option, err)
	}
	return nil
}

func dropLines(file, prefix string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(text), "\n")
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, prefix) })
	if len(kept) == len(lines) {
		return nil
	}
	return atomicfile.Write(file, []byte(strings.Join(kept, "")), 0o600)
}
