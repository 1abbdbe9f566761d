package foreign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// endPause is how often it is looked whether a process has ended.
const endPause = 20 * time.Millisecond

// End asks a daemon to end (SIGTERM), and returns when it has. It is never killed: when ctx ends before, it runs on. A process that has
// ended, or is another one by now, is no error.
func End(ctx context.Context, d *api.ForeignDaemon) error {
	fd, err := unix.PidfdOpen(int(d.PID), 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while opening process %d: %w", d.PID, err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	defer pidfd.Close()
	// From here on the number cannot pass to another process unseen: it is looked at once more.
	all, err := new(Finder).Find(nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(now api.ForeignDaemon) bool { return same(&now, d) }) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("while ending process %d: %w", d.PID, err)
	}
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(endPause.Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("while waiting for the end of process %d: %w", d.PID, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// same says whether two looks at a process number were at one daemon. Its cluster may have been known to one of them alone.
func same(a, b *api.ForeignDaemon) bool {
	return a.PID == b.PID && a.Type == b.Type && a.ID == b.ID && (a.Cluster == b.Cluster || a.Cluster == "" || b.Cluster == "")
}
