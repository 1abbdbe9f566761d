// Package du is the part of github.com/ricochet2200/go-disk-usage/du that torusd calls, written
// anew.
package du

import "syscall"

// DiskUsage is the room of a file system.
type DiskUsage struct{ stat syscall.Statfs_t }

// NewDiskUsage asks for the file system of a path. Of a path that cannot be asked for it is empty.
func NewDiskUsage(path string) *DiskUsage {
	d := &DiskUsage{}
	_ = syscall.Statfs(path, &d.stat) // the original has no error either
	return d
}

// Size is the size of the file system in bytes.
func (d *DiskUsage) Size() uint64 { return d.stat.Blocks * uint64(d.stat.Bsize) }
