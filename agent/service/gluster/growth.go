package gluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// worthGrowing is how much larger than its file system a device has to be: XFS leaves a rest that
// is too small unused.
const worthGrowing = 16 << 20

// geometryRequest is XFS_IOC_FSGEOMETRY_V1, and geometry the head of its answer (Linux,
// fs/xfs/libxfs/xfs_fs.h).
const geometryRequest = 0x80705864

type geometry struct {
	blockSize uint32
	_         [7]uint32
	blocks    uint64
	_         [72]byte
}

// grown says whether the device below a mounted file system has grown since that was made.
func grown(mount string) (bool, error) {
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(mount))
	if err != nil || len(infos) == 0 {
		return false, err
	}
	device, err := sizeOfDevice(infos[0].Major, infos[0].Minor)
	if err != nil {
		return false, err
	}
	used, err := sizeOfFilesystem(mount)
	return err == nil && device >= used+worthGrowing, err
}

func sizeOfDevice(major, minor int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/size", major, minor))
	if err != nil {
		return 0, fmt.Errorf("while asking for the size of a device: %w", err)
	}
	const sector = 512 // in sysfs, whatever the device has
	sectors, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return sectors * sector, err
}

func sizeOfFilesystem(mount string) (int64, error) {
	dir, err := os.Open(mount)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var g geometry
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), geometryRequest, uintptr(unsafe.Pointer(&g)))
	if errno != 0 {
		return 0, fmt.Errorf("while asking for the size of the file system at %s: %w", mount, errno)
	}
	return int64(g.blockSize) * int64(g.blocks), nil
}

// grow has a mounted file system use all of its device.
func grow(ctx context.Context, mount string) error {
	more, err := grown(mount)
	if err != nil || !more {
		return err
	}
	if err := tool.Run(ctx, filepath.Dir(mount), "xfs_growfs", "-d", mount); err != nil {
		return fmt.Errorf("its device is larger than its file system, which cannot be grown: %w", err)
	}
	return nil
}
