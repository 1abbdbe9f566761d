package gate

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-storage/holdfast/internal/blank"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// What is overwritten at the two ends of a device beside its samples, in bytes: at the start the
// label and the superblocks of BlueFS and BlueStore behind it, at the end what a partition table
// would have left.
const (
	wipedStart = 10 << 20
	wipedEnd   = 1 << 20
)

// Wipe makes a device look empty. The label goes last: until then the device still says whose it
// is, so that a wipe that was cut off is done again. The device must be a block device that nobody
// else uses: the error wraps unix.EBUSY otherwise. sure, unless it is nil, is asked once nobody
// else can begin to use the device; its error ends the wipe.
func Wipe(ctx context.Context, path string, sure func() error) error {
	f, err := openAlone(ctx, path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("while opening %s to wipe it: %w", path, err)
	}
	defer f.Close() // it is synced
	if sure != nil {
		if err := sure(); err != nil {
			return err
		}
	}
	if err := wipeFile(ctx, f); err != nil {
		return fmt.Errorf("while wiping %s: %w", path, err)
	}
	return nil
}

func wipeFile(ctx context.Context, f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	start, end := blank.Span{To: wipedStart}, blank.Span{From: max(0, size-wipedEnd), To: size}
	return blank.Wipe(ctx, f, size, bluestore.LabelSize, start, end)
}
