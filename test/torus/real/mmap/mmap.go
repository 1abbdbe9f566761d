// Package mmap is the part of github.com/barakmich/mmap-go that torusd calls, written anew.
package mmap

import (
	"os"
	"syscall"
	"unsafe"
)

// RDWR maps a file for reading and writing.
const RDWR = syscall.PROT_READ | syscall.PROT_WRITE

// MMap is a mapped file.
type MMap []byte

// Map maps a whole file.
func Map(f *os.File, prot, _ int) (MMap, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, int(info.Size()), prot, syscall.MAP_SHARED)
}

// Flush waits until the file has what was written.
func (m MMap) Flush() error { return m.sync(syscall.MS_SYNC) }

// FlushAsync has the kernel write to the file.
func (m MMap) FlushAsync() error { return m.sync(syscall.MS_ASYNC) }

func (m MMap) sync(how uintptr) error {
	if len(m) == 0 {
		return nil
	}
	if _, _, e := syscall.Syscall(syscall.SYS_MSYNC, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), how); e != 0 {
		return e
	}
	return nil
}

// Unmap gives the mapping back.
func (m MMap) Unmap() error { return syscall.Munmap(m) }
