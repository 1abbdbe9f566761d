package agent

import (
	"cmp"
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watchMounts has the host looked at whenever something is mounted or unmounted, of which the kernel sends no message about
// the device, until ctx ends.
func (a *agent) watchMounts(ctx context.Context) {
	f, err := os.Open(cmp.Or(a.Mounts, "/proc/self/mountinfo"))
	if err != nil {
		a.log.Warn("mounts are noticed only at the next regular scan", "error", err)
		return
	}
	defer f.Close()
	var wake [2]int
	if err := unix.Pipe2(wake[:], unix.O_CLOEXEC); err != nil {
		a.log.Warn("mounts are noticed only at the next regular scan", "error", err)
		return
	}
	defer unix.Close(wake[0])
	// Closing the other end ends the wait below.
	release := context.AfterFunc(ctx, func() { unix.Close(wake[1]) })
	defer func() {
		if release() {
			unix.Close(wake[1])
		}
	}()
	for ctx.Err() == nil {
		// The kernel tells of a changed table by POLLERR and POLLPRI (proc(5), /proc/pid/mounts).
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}, {Fd: int32(wake[0])}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			a.log.Warn("mounts are noticed only at the next regular scan", "error", err)
			return
		}
		if fds[0].Revents != 0 {
			a.askReport()
		}
	}
}
