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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00")
	if !strings.Contains(args[0], "gluster") {
		return false
	}
	for i, arg := range args {
		file, ok := strings.CutPrefix(arg, "--pid-file=")
		if (arg == "-p" || arg == "--pid-file") && i+1 < len(args) {
			file, ok = args[i+1], true
		}
		if ok && (strings.HasPrefix(file, l.Run+"/") || strings.HasPrefix(file, l.Data+"/")) {
			return true
		}
	}
	return false
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
// glusterd (10.3) takes a brick, or a rebalance, for one that runs if the process of that number
// lives, whatever that is, and never starts it. In a new pod, and after a boot, numbers begin anew,
// so an old number soon is that of another process.
//
// A process of GlusterFS that lives has a lock on its pid file. The self-heal daemon has several,
// of which its command line names one.
func (Glusterd) BeforeStart(p runtime.Process) error {
	files, err := pidFiles(p.RunDir)
	if err != nil {
		return err
	}
	// Below the working directory there are only those: bricks are mounted there, too.
	rebalances, err := filepath.Glob(filepath.Join(p.Dir, "state", "vols", "*", "rebalance", "*.pid"))
	if err != nil {
		return fmt.Errorf("while looking for pid files: %w", err)
	}
	var errs []error
	for _, file := range append(files, rebalances...) {
		if err := removeStale(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("while removing the file of a process that is gone: %w", err))
		}
	}
	return errors.Join(errs...)
}

// pidFiles are those below a directory. No such directory is none.
func pidFiles(dir string) (files []string, err error) {
	if dir == "" {
		return nil, nil
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) == ".pid" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("while looking for pid files: %w", err)
	}
	return files, nil
}

// removeStale removes a pid file on which no process has a lock (fcntl(2), F_GETLK), in whichever
// namespace of processes it is.
func removeStale(file string) error {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return fmt.Errorf("asking for its lock: %w", err)
	}
	if lock.Type != unix.F_UNLCK {
		return nil
	}
	return os.Remove(file)
}
