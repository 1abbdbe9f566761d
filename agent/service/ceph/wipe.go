package ceph

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// What is overwritten at the two ends of a device, in bytes: at the start the label and the superblocks of BlueFS and
// BlueStore behind it, at the end what a partition table would have left.
const (
	wipedStart = 10 << 20
	wipedEnd   = 1 << 20
)

// labelCopies are the places of the copies that BlueStore keeps of its label since release 19 (Ceph,
// os/bluestore/BlueStore.cc, bdev_label_positions).
var labelCopies = []int64{1 << 30, 10 << 30, 100 << 30, 1000 << 30}

// wipe makes a device look empty. The label goes last: until then the device still says whose it is, so that a wipe that was
// cut off is done again. The device must be a block device that nobody else uses: O_EXCL fails otherwise.
func wipe(ctx context.Context, path, uuid string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return fmt.Errorf("while opening %s to wipe it: %w", path, err)
	}
	defer f.Close() // it is synced
	if err := wipeFile(ctx, f, uuid); err != nil {
		return fmt.Errorf("while wiping %s: %w", path, err)
	}
	return nil
}

func wipeFile(ctx context.Context, f *os.File, uuid string) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := wipeCopies(ctx, f, size, uuid); err != nil {
		return err
	}
	for _, part := range [][2]int64{
		{max(bluestore.LabelSize, size-wipedEnd), size}, {bluestore.LabelSize, min(size, wipedStart)}, {0, min(size, bluestore.LabelSize)},
	} {
		if err := zero(ctx, f, part[0], part[1]); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// wipeCopies overwrites the copies of the OSD's label, and nothing that is not one.
func wipeCopies(ctx context.Context, f *os.File, size int64, uuid string) error {
	b := make([]byte, bluestore.LabelSize)
	for _, at := range labelCopies {
		if at+bluestore.LabelSize > size {
			return nil
		}
		if _, err := f.ReadAt(b, at); err != nil {
			return err
		}
		if l, err := bluestore.ParseLabel(b); err != nil || l.OSDUUID != uuid {
			continue
		}
		if err := zero(ctx, f, at, at+bluestore.LabelSize); err != nil {
			return err
		}
	}
	return nil
}

func zero(ctx context.Context, f *os.File, from, to int64) error {
	return atomicfile.Guarded(f.Name(), func() error { return zeroBlocks(ctx, f, from, to) })
}

func zeroBlocks(ctx context.Context, f *os.File, from, to int64) error {
	block := make([]byte, 1<<20)
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.WriteAt(block[:min(int64(len(block)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}
