// Package disk puts filesystems on block devices, and mounts and grows them. It makes a filesystem
// on a device that is empty, and on no other.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"

	"github.com/holdfast-storage/holdfast/internal/blank"
)

// The filesystems that can be made.
const (
	XFS  = "xfs"
	Ext4 = "ext4"
)

// leastXFS is the smallest device that mkfs.xfs takes.
const leastXFS = 300 << 20

// Journal remembers, where a power cut does not reach it, that a filesystem is being made. A device
// that is not empty may be formatted if a filesystem was being made on it: nobody has ever mounted
// it.
type Journal interface {
	Formatting(ctx context.Context) (bool, error)
	SetFormatting(ctx context.Context, on bool) error
}

// Choose returns the filesystem for a device of a size: the one that is asked for, or the default.
func Choose(asked string, bytes int64) (string, error) {
	switch {
	case asked == "" && bytes < leastXFS:
		return Ext4, nil
	case asked == "":
		return XFS, nil
	case asked == XFS && bytes < leastXFS:
		return "", status.Errorf(codes.InvalidArgument,
			"XFS needs a volume of 300 MiB; ask for more, or for the filesystem ext4")
	case asked == XFS, asked == Ext4:
		return asked, nil
	}
	return "", status.Errorf(codes.InvalidArgument, "the filesystem %q cannot be made; use xfs or ext4", asked)
}

// Mount mounts a device at a directory. Where the device is empty, it makes the filesystem first.
func Mount(ctx context.Context, device, dir, fsType string, options []string, j Journal) error {
	if mounted, err := IsMounted(dir); err != nil || mounted {
		return err
	}
	if err := format(ctx, device, fsType, j); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := mount.New("").Mount(device, dir, fsType, options); err != nil {
		return fmt.Errorf("mounting %s (%s) at %s: %w", device, fsType, dir, err)
	}
	return nil
}

// format makes a filesystem on a device that is empty, or on which one was being made.
func format(ctx context.Context, device, fsType string, j Journal) error {
	again, err := j.Formatting(ctx)
	if err != nil {
		return err
	}
	if !again {
		empty, err := isEmpty(ctx, device)
		if err != nil || !empty {
			return err
		}
		if err := j.SetFormatting(ctx, true); err != nil {
			return err
		}
	}
	args := map[string][]string{XFS: {"-q", "-f", device}, Ext4: {"-q", "-F", "-m0", device}}[fsType]
	if err := run(ctx, "mkfs."+fsType, args...); err != nil {
		return err
	}
	return j.SetFormatting(ctx, false)
}

func isEmpty(ctx context.Context, device string) (bool, error) {
	f, err := os.Open(device)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, found, err := blank.Look(ctx, f)
	if err != nil {
		return false, fmt.Errorf("looking whether %s is empty: %w", device, err)
	}
	return !found, nil
}

// Grow makes the filesystem of a device, mounted at a directory, as large as the device.
func Grow(device, dir string) error {
	_, err := mount.NewResizeFs(executor()).Resize(device, dir)
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "Permission denied to resize filesystem") {
		return status.Errorf(codes.FailedPrecondition,
			"ext4 at %s cannot grow while it is mounted: this machine does not permit it "+
				"(CAP_SYS_RESOURCE is missing); use XFS for volumes that grow", dir)
	}
	return fmt.Errorf("growing the filesystem at %s: %w", dir, err)
}

// run runs a program that ends with ctx.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return status.Errorf(codes.FailedPrecondition, "%s is not installed on this node", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
