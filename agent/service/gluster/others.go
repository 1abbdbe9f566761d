package gluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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
