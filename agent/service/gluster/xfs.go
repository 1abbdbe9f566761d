package gluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/blank"
)

// label is the label of each file system that is made here (at most 12 bytes, mkfs.xfs(8)).
const label = "holdfast"

// superblockSize is how much of a device is read to find out whether XFS is on it: the smallest sector that XFS knows.
const superblockSize = 512

// unfinishedAt is where in the superblock mkfs.xfs notes that it is at work (sb_inprogress).
const unfinishedAt = 126

// superblock is what is read of the start of an XFS file system (Linux, fs/xfs/libxfs/xfs_format.h, struct xfs_dsb).
type superblock struct {
	uuid string
	// unfinished is set while mkfs.xfs or a wipe is at work, and stays when it is cut off.
	unfinished bool
}

// readSuperblock returns nil where there is no XFS.
func readSuperblock(path string) (*superblock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, superblockSize)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("while reading %s: %w", path, err)
	}
	return parseSuperblock(b), nil
}

func parseSuperblock(b []byte) *superblock {
	if len(b) < superblockSize || string(b[:4]) != "XFSB" {
		return nil
	}
	return &superblock{uuid: uuidText(b[32:48]), unfinished: b[unfinishedAt] != 0}
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// uuidOf is the identity of the file system on a device of a pool. It is made of both, so that a device is known again
// whatever was lost on the host, and is not taken for one of another pool (version 8 of RFC 9562).
func uuidOf(pool, device string) string {
	sum := sha256.Sum256([]byte(pool + "\x00" + device))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return uuidText(b)
}

// wipedEnds is how much is overwritten at both ends of a device that is given up, beside its
// samples, in bytes: the superblock and what follows, and what a partition table would have left at
// the end.
const wipedEnds = 1 << 20

// wipe makes a device with this file system look empty. Where another file system is found, nothing is done. The device must
// not be in use: O_EXCL fails otherwise.
func wipe(ctx context.Context, path, uuid string) error {
	sb, err := readSuperblock(path)
	if err != nil {
		return err
	}
	if sb == nil || sb.uuid != uuid {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return fmt.Errorf("while opening %s to wipe it: %w", path, err)
	}
	defer f.Close() // it is synced
	if err := wipeFile(ctx, f); err != nil {
		return fmt.Errorf("while wiping %s: %w", path, err)
	}
	return nil
}

// wipeFile has the superblock say first that nothing is finished here, and overwrites it last: until then the device says whose it is, and a wipe that was cut
// off is done again, or the file system made anew.
func wipeFile(ctx context.Context, f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err = atomicfile.Guarded(f.Name(), func() error {
		_, err := f.WriteAt([]byte{1}, unfinishedAt)
		return errors.Join(err, f.Sync())
	})
	if err != nil {
		return err
	}
	start, end := blank.Span{To: wipedEnds}, blank.Span{From: max(0, size-wipedEnds), To: size}
	return blank.Wipe(ctx, f, size, superblockSize, start, end)
}
