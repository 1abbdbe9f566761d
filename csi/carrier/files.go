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
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// unmountedName is a file, in the volume's own directory, that is there from before its unmounting.
const unmountedName = "unmounted"

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
	if err := atomicfile.Remove(filepath.Join(v.Dir, unmountedName)); err != nil {
		return err
	}
	args, err := command()
	if err != nil {
		return err
	}
	return c.start(ctx, v, args, v.Dir, filepath.Dir(v.Staging))
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

// Unmount undoes Mount. What is mounted goes first: the process then writes what it holds, and ends.
// Until it has ended it is not stopped, and Unmount fails where that is not in time.
func (c *Carriers) Unmount(ctx context.Context, v backend.Volume) error {
	mounted, err := disk.IsMounted(v.Staging)
	if err != nil {
		return err
	}
	if mounted {
		// A call after one that was cut off has to know that the process may hold something.
		if err := atomicfile.Write(filepath.Join(v.Dir, unmountedName), nil, 0o600); err != nil {
			return err
		}
		if err := disk.Unmount(v.Staging); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(v.Dir, unmountedName)); err == nil {
		if err := c.awaitEnd(ctx, v); err != nil {
			return err
		}
	}
	return c.Stop(ctx, v)
}

// awaitEnd waits until the volume's process has ended.
func (c *Carriers) awaitEnd(ctx context.Context, v backend.Volume) error {
	for {
		if s, known := c.Runtime.State(c.Name(v)); !known || !s.Running {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.DeadlineExceeded,
				"the process %s that carries the volume still writes what it holds; see whether the storage cluster "+
					"is online; ending the process loses that", c.Name(v))
		case <-time.After(lookEvery):
		}
	}
}
