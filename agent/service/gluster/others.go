package gluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
)

// endTimeout is how long the processes may take to end after SIGTERM, before they are killed.
const endTimeout = 10 * time.Second

// EndOthers ends bricks, self-heal and all that the daemon's glusterd started: SIGTERM first, which has a brick tell its clients
// that it goes, and SIGKILL to what is left.
func (Glusterd) EndOthers(ctx context.Context, l *service.Local) error {
	all, err := others(l)
	defer func() {
		for _, p := range all {
			p.fd.Close()
		}
	}()
	if err != nil {
		return fmt.Errorf("while looking for the processes of glusterd %s: %w", l.Daemon.Spec.ID, err)
	}
	for _, p := range all {
		if err := p.signal(unix.SIGTERM); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(endTimeout)
	for _, p := range all {
		if p.awaitEnd(ctx, time.Until(deadline)) {
			continue
		}
		if err := p.signal(unix.SIGKILL); err != nil {
			return err
		}
		if !p.awaitEnd(ctx, endTimeout) {
			return fmt.Errorf("process %d, which serves bricks, does not end: a disk may not answer", p.pid)
		}
	}
	return ctx.Err()
}

// other is a process that glusterd started.
type other struct {
	pid int
	fd  *os.File
}

// others finds the processes by the pid file that each of them is told to write, which lies in this daemon's directories alone.
// The files themselves may be gone or old.
func others(l *service.Local) ([]other, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []other
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !belongs(pid, l) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("while opening process %d: %w", pid, err)
		}
		f := os.NewFile(uintptr(fd), "pidfd")
		// Looked at again: from here on the number cannot pass to another process.
		if !belongs(pid, l) {
			f.Close()
			continue
		}
		out = append(out, other{pid, f})
	}
	return out, nil
}

// belongs says whether a process was told to write its pid file below the daemon's directories.
func belongs(pid int, l *service.Local) bool {
	file := pidFileOf(pid)
	return strings.HasPrefix(file, l.Run+"/") || strings.HasPrefix(file, l.Data+"/")
}

// ownedPidFiles are those that the processes of GlusterFS on this machine were told to write.
func ownedPidFiles() (map[string]bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			owned[pidFileOf(pid)] = true
		}
	}
	return owned, nil
}

// pidFileOf is the file that a process of GlusterFS was told to write its number to; empty for any
// other process.
func pidFileOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	args := strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00")
	if !strings.Contains(args[0], "gluster") {
		return ""
	}
	for i, arg := range args {
		if file, ok := strings.CutPrefix(arg, "--pid-file="); ok {
			return filepath.Clean(file)
		}
		if (arg == "-p" || arg == "--pid-file") && i+1 < len(args) {
			return filepath.Clean(args[i+1])
		}
	}
	return ""
}

func (p other) signal(sig unix.Signal) error {
	if err := unix.PidfdSendSignal(int(p.fd.Fd()), sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("while ending process %d: %w", p.pid, err)
	}
	return nil
}

// awaitEnd waits for the end of the process, and says whether it came.
func (p other) awaitEnd(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, 0))
	defer cancel()
	for {
		// In slices, so that the end of the context is seen.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd.Fd()), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return true
		}
		if ctx.Err() != nil || err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// BeforeStart removes the pid files of processes that glusterd started once and that are gone.
// glusterd (10.3) takes a brick for one that runs if the process of that number lives, whatever
// that is, and never starts the brick. In a new pod numbers begin anew, so an old number soon
// is one of glusterd's own.
func (Glusterd) BeforeStart(p runtime.Process) error {
	if p.RunDir == "" {
		return nil
	}
	files, err := pidFiles(p.RunDir)
	if err != nil || len(files) == 0 {
		return err
	}
	owned, err := ownedPidFiles()
	if err != nil {
		return fmt.Errorf("while looking for what glusterd started: %w", err)
	}
	var errs []error
	for file, seen := range files {
		if owned[file] || changed(file, seen) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("while removing the file of a process that is gone: %w", err))
		}
	}
	return errors.Join(errs...)
}

// pidFiles are those below a directory. No such directory is none.
func pidFiles(dir string) (map[string]os.FileInfo, error) {
	files := map[string]os.FileInfo{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Ext(path) != ".pid" {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err == nil {
			files[path] = info
		}
		return ignoreGone(err)
	})
	if err != nil {
		return nil, fmt.Errorf("while looking for pid files: %w", err)
	}
	return files, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// changed says whether a file is no longer the one that was seen.
func changed(file string, seen os.FileInfo) bool {
	now, err := os.Lstat(file)
	return err != nil || !os.SameFile(now, seen) || !now.ModTime().Equal(seen.ModTime())
}
