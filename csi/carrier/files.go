package carrier

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/disk"
)

const (
	// endTimeout is how long a process may take to end by itself when its files are unmounted.
	endTimeout = 10 * time.Second
	// flushTimeout is how long it may take then to write what it holds, when it is asked to end. Where
	// the cluster does not answer, that is long.
	flushTimeout = time.Hour
)

// Mount has a process mount files by FUSE at v.Staging, and nowhere else: the kubelet unmounts nothing
// that is mounted a second time. late is the sentence for files that do not appear in time. command is
// the process's, with v.Options, and is asked for only when one is to be started.
func (c *Carriers) Mount(ctx context.Context, v backend.Volume, late string, command func() ([]string, error)) error {
	mounted, err := disk.IsMounted(v.Staging)
	if err != nil {
		return err
	}
	if mounted {
		if why := c.Problem(v); why != "" {
			return status.Error(codes.Internal, why)
		}
		return answers(ctx, v.Staging, late)
	}
	if err := needFUSE(fuseDevice); err != nil {
		return err
	}
	if err := c.run(ctx, v, command); err != nil {
		return err
	}
	if err := c.Await(ctx, v, late, func() (bool, error) { return disk.IsMounted(v.Staging) }); err != nil {
		return err
	}
	return answers(ctx, v.Staging, late)
}

// fuseDevice is what programs mount files by.
const fuseDevice = "/dev/fuse"

// needFUSE fails on a node without FUSE.
func needFUSE(device string) error {
	_, err := os.Stat(device)
	if errors.Is(err, os.ErrNotExist) {
		return status.Errorf(codes.FailedPrecondition, "this node has no %s; load the kernel module fuse", device)
	}
	return err
}

// run has the volume's process run. Of one that has ended, nothing is of use any more.
func (c *Carriers) run(ctx context.Context, v backend.Volume, command func() ([]string, error)) error {
	known, useful := c.Known(v)
	if useful {
		return nil
	}
	if known {
		if err := c.Stop(ctx, v); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(v.Staging, 0o750); err != nil {
		return err
	}
	args, err := command()
	if err != nil {
		return err
	}
	return c.start(ctx, v, flushTimeout, args, v.Dir, filepath.Dir(v.Staging))
}

// answers waits until a filesystem answers, which may hang in the kernel.
func answers(ctx context.Context, dir, late string) error {
	done := make(chan error, 1)
	go func() {
		var s unix.Statfs_t
		done <- unix.Statfs(dir, &s)
	}()
	select {
	case err := <-done:
		if err != nil {
			return status.Errorf(codes.Internal, "the files that are mounted at %s cannot be read: %v", dir, err)
		}
		return nil
	case <-ctx.Done():
		return status.Error(codes.DeadlineExceeded, late)
	}
}

// Unmount undoes Mount. What is mounted goes first: the process then writes what it holds, and ends. It
// does not end by itself where another mount namespace has a copy of the mount.
func (c *Carriers) Unmount(ctx context.Context, v backend.Volume) error {
	mounted, err := disk.IsMounted(v.Staging)
	if err != nil {
		return err
	}
	if mounted {
		if err := disk.Unmount(v.Staging); err != nil {
			return err
		}
		c.awaitEnd(ctx, v)
	}
	err = c.Stop(ctx, v)
	if err != nil && ctx.Err() != nil {
		return status.Errorf(codes.DeadlineExceeded,
			"the process %s that carries the volume still writes what it holds; see whether the storage cluster "+
				"is online; ending the process loses that", c.Name(v))
	}
	return err
}

// awaitEnd gives the volume's process time to end by itself.
func (c *Carriers) awaitEnd(ctx context.Context, v backend.Volume) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for {
		if s, known := c.Runtime.State(c.Name(v)); !known || !s.Running {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}
