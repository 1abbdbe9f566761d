package partition

import (
	"context"
	"fmt"
	"path/filepath"
)

// Forget has the kernel forget all partitions of a disk whose table is gone. It fails while one of
// them is in use.
func Forget(ctx context.Context, path string) error {
	disk := filepath.Base(path)
	// A pattern whose only special character is a star is never malformed.
	shown, _ := filepath.Glob(filepath.Join("/sys/class/block", disk, disk+"*"))
	for _, dir := range shown {
		number := attr(dir, "partition")
		if number < 0 {
			continue
		}
		if err := forget(ctx, path, int(number)); err != nil {
			return fmt.Errorf("while having the kernel forget partition %d of %s: %w", number, path, err)
		}
	}
	return nil
}
