// Package inventory tells which block devices a host has, by identities that stay the same when a
// device is renamed, moved to another slot or seen by another kernel, and whether a device may be
// claimed for storage.
//
// What the kernel knows comes from sysfs, /proc/self/mountinfo and /proc/swaps; what is written on
// a device from libblkid's low-level probe (blkid -p) and from the labels of BlueStore and LVM.
// What has no signature is found by samples (package blank). The udev database adds links and names
// where there is one; nothing depends on udevd running. A device is Available only if nothing at
// all was found on it: whenever something is in doubt, it is not.
package inventory

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// DefaultTimeout is how long one device may take to answer. A healthy one needs some milliseconds; a disk that retries a
// bad sector can hold a read for many seconds.
const DefaultTimeout = 10 * time.Second

// maxDevices is the bound of Host.status.devices.
const maxDevices = 512

// Scanner makes the inventory of the host that it runs on. The zero value is ready to use. It is safe for concurrent use.
type Scanner struct {
	// Only restricts the inventory: whole devices for which it returns false are neither read nor reported, and neither
	// are their partitions. It sees what the kernel knows of a device (ID, Path, Kind, Size, …), not yet what is on it. Nil
	// means everything. Hosts that share one kernel (test hosts made of namespaces) see each other's loop devices in
	// sysfs; Filter makes a function that leaves to each the disks in its own directory.
	Only func(api.Device) bool
	// Claimed returns why the caller itself is working on the device with this ID, as a sentence, or "". A device that is
	// claimed is not opened exclusively, which might make the work on it fail with "device or resource busy".
	Claimed func(id string) string
	// Timeout is how long one device may take to answer; zero means DefaultTimeout. A device that does not answer in time
	// is reported as such and not asked again before the question that hangs has returned.
	Timeout time.Duration
	// Mounts is the file that has the mounts of the host; empty means /proc/self/mountinfo. In a
	// container the scanner's own mount namespace shows hardly any of them, and that of the host's
	// first process (/proc/1/mountinfo) all.
	Mounts string

	// root is prefixed to /sys, /proc and /run, and look replaces the look at the devices, in tests.
	root string
	look func(ctx context.Context, path string) findings

	mu    sync.Mutex
	known map[string]known
	stuck sync.Map // kernel name -> struct{}, while a look is under way
}

// known is what was found on a device, and when it holds.
type known struct {
	mark  string
	found findings
}

// Devices returns the inventory, sorted by path. Devices that have not been written to since the last scan are not probed
// again: the kernel counts writes (Documentation/block/stat.rst). A failure of one device is told in its reasons; an error
// means that there is no inventory at all.
func (s *Scanner) Devices(ctx context.Context) ([]api.Device, error) {
	return s.scan(ctx, false)
}

// Rescan is Devices with every device probed anew. Call it before something is done to a device that cannot be undone:
// another host may have written to a shared one.
func (s *Scanner) Rescan(ctx context.Context) ([]api.Device, error) {
	return s.scan(ctx, true)
}

func (s *Scanner) scan(ctx context.Context, anew bool) ([]api.Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if anew {
		s.known = nil
	}
	blocks, err := readBlocks(filepath.Join(s.root, "/sys/block"), filepath.Join(s.root, "/run/udev/data"))
	if err != nil {
		return nil, fmt.Errorf("while reading the block devices: %w", err)
	}
	use, err := readUse(s.root, s.Mounts, blocks)
	if err != nil {
		return nil, err
	}
	kept := s.keep(blocks)
	found, err := s.probe(ctx, kept)
	if err != nil {
		return nil, err
	}
	ids := identify(blocks, kept, found)
	devices := make([]api.Device, 0, len(kept))
	for _, b := range kept {
		devices = append(devices, s.device(b, ids, use, found[b.name]))
	}
	return devices[:min(len(devices), maxDevices)], nil
}

// keep returns the blocks that belong into the inventory.
func (s *Scanner) keep(blocks []*block) []*block {
	var kept []*block
	for _, b := range blocks {
		disk := b.disk()
		if b.size == 0 || disk.size == 0 || disk.leftOut() {
			continue
		}
		if s.Only == nil || s.Only(disk.device(disk.hardwareID())) {
			kept = append(kept, b)
		}
	}
	return kept
}
