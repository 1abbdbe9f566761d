package inventory

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Busy says, in sentences as in Device.Reasons, why nothing may be done to a whole device that
// costs what is on it: it or a partition of it is in use, or belongs to a volume group, or the
// device is read-only. What is in use by nobody is not busy, whatever is on it. An error means that
// this cannot be known.
func (s *Scanner) Busy(ctx context.Context, path string) ([]string, error) {
	blocks, err := readBlocks(filepath.Join(s.root, "/sys/block"), filepath.Join(s.root, "/run/udev/data"))
	if err != nil {
		return nil, fmt.Errorf("while reading the block devices: %w", err)
	}
	use, err := readUse(s.root, s.Mounts, blocks)
	if err != nil {
		return nil, err
	}
	var parts []*block
	for _, b := range blocks {
		if b.disk().path() == path {
			parts = append(parts, b)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("the kernel shows no device %s", path)
	}
	var why []string
	for _, b := range parts {
		why = append(why, ofPart(b, busyReasons(b, use))...)
	}
	if len(why) > 0 || s.look != nil {
		return why, nil
	}
	return s.opened(ctx, parts)
}

// opened opens a disk and its partitions, whose first is the disk. One that hangs is left behind.
func (s *Scanner) opened(ctx context.Context, parts []*block) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, DefaultTimeout))
	defer cancel()
	done := make(chan []string, 1)
	go func() {
		var why []string
		for _, b := range parts {
			why = append(why, ofPart(b, inGroup(b.path()))...)
		}
		// The kernel refuses it for the disk while a partition is in use, too.
		if reason := openable(parts[0].disk().path()); len(why) == 0 && reason != "" {
			why = []string{reason}
		}
		done <- why
	}()
	select {
	case why := <-done:
		return why, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not answer: %w", parts[0].disk().path(), context.Cause(ctx))
	}
}

// ofPart names the partition that reasons are about.
func ofPart(b *block, reasons []string) []string {
	if b.parent == nil {
		return reasons
	}
	for i := range reasons {
		reasons[i] = "partition " + b.path() + " " + reasons[i]
	}
	return reasons
}

// busyReasons are those of the reasons for not being available that say who uses a device.
func busyReasons(b *block, u use) []string {
	var out []string
	if b.readOnly {
		out = append(out, "is read-only")
	}
	alone := *b
	alone.partitions = nil // each is asked for itself
	return append(out, useReasons(&alone, u)...)
}

// inGroup says whether a device belongs to a volume group of LVM, volumes of which may lie on other
// disks, too. The kernel shows no holder of the device while none of them is active.
func inGroup(path string) []string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return []string{"cannot be opened: " + cause(err)}
	}
	defer f.Close()
	if group := volumeGroup(f); group != "" {
		return []string{"holds LVM volume group " + group + ": remove that first ('vgremove " + group + "')"}
	}
	return nil
}
