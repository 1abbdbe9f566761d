package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// everybody is more than ever use the partitions of one disk at a time.
const everybody = 1 << 20

// uses has a semaphore for each disk: who uses its partitions takes one, and who changes its table all.
var uses sync.Map

// Use keeps the tables of disks from being changed until done is called. sfdisk opens a disk for itself alone while it writes, and ceph-osd each
// device of an OSD that it makes, which it closes and opens several times meanwhile: whichever comes second fails. It returns an error when ctx ends first.
func Use(ctx context.Context, paths ...string) (done func(), err error) {
	var all []func()
	done = func() {
		for _, free := range all {
			free()
		}
	}
	// Each once and in one order: who waits for a disk never has one that another waits for who has this.
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		free, err := take(ctx, path, 1)
		if err != nil {
			done()
			return nil, err
		}
		all = append(all, free)
	}
	return done, nil
}

// Held are disks whose tables stay as they are.
type Held struct {
	// Files are locks that last until the last process has closed them. A program that inherits them keeps the tables as they are for as long as it
	// runs, also when the agent dies meanwhile and another one begins.
	Files []*os.File
	free  func()
}

// Hold is Use for what a program does on the partitions.
func Hold(ctx context.Context, paths ...string) (*Held, error) {
	free, err := Use(ctx, paths...)
	if err != nil {
		return nil, err
	}
	h := &Held{free: free}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		d, err := open(ctx, path, os.O_RDONLY, unix.LOCK_SH)
		if err != nil {
			h.Done()
			return nil, err
		}
		h.Files = append(h.Files, d)
	}
	return h, nil
}

// Done lets the tables be changed again when no program has inherited the files that still runs.
func (h *Held) Done() {
	for _, d := range h.Files {
		_ = d.Close() // nothing was written
	}
	h.free()
}

func take(ctx context.Context, path string, n int64) (func(), error) {
	of, _ := uses.LoadOrStore(path, semaphore.NewWeighted(everybody))
	s := of.(*semaphore.Weighted)
	if err := s.Acquire(ctx, n); err != nil {
		return nil, fmt.Errorf("while waiting for others to be done with disk %s: %w", path, err)
	}
	return func() { s.Release(n) }, nil
}

// change opens a disk to change its table, alone.
func change(ctx context.Context, path string) (*os.File, func(), error) {
	free, err := take(ctx, path, everybody)
	if err != nil {
		return nil, nil, err
	}
	d, err := open(ctx, path, os.O_RDWR, unix.LOCK_EX)
	if err != nil {
		free()
		return nil, nil, err
	}
	return d, func() { _ = d.Close(); free() }, nil // what was written is on the disk already
}

// open opens a disk and locks it against others who change its table, us among them and udevd (systemd.io, "Locking block device access").
func open(ctx context.Context, path string, flag, lock int) (*os.File, error) {
	d, err := os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("while opening disk %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := unix.Flock(int(d.Fd()), lock|unix.LOCK_NB)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("while locking disk %s: %w", path, err), d.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("while waiting for the lock of disk %s: %w", path, context.Cause(ctx)), d.Close())
		case <-time.After(pause):
		}
	}
}
