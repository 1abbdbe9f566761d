package luks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// control is where device-mapper is asked.
const control = "/dev/mapper/control"

// load has the kernel load dm-crypt, once: where there is no such module, there will be none.
var load = sync.OnceFunc(func() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = exec.CommandContext(ctx, "modprobe", "-q", "dm_crypt").Run() // what came of it is seen below
})

// Available says why devices of this host cannot be encrypted, or nil.
func Available() error {
	err := targets()
	if err != nil {
		load()
		err = targets()
	}
	return errors.Join(err, tool.Require("cryptsetup", "cryptsetup-bin"))
}

// targets asks device-mapper whether it can encrypt (Linux, include/uapi/linux/dm-ioctl.h, DM_LIST_VERSIONS).
func targets() error {
	f, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the kernel has no device-mapper, which dm-crypt is a part of (%w)", err)
	}
	defer f.Close()
	const (
		header       = 312 // the size of struct dm_ioctl
		listVersions = 3<<30 | header<<16 | 0xfd<<8 | 13
	)
	b := make([]byte, 16<<10)
	binary.NativeEndian.PutUint32(b[0:], 4) // the version of the interface
	binary.NativeEndian.PutUint32(b[12:], uint32(len(b)))
	binary.NativeEndian.PutUint32(b[16:], header)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), listVersions, uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
		return fmt.Errorf("device-mapper does not say what it can do: %w", errno)
	}
	if !bytes.Contains(b[header:], []byte("\x00crypt\x00")) {
		return errors.New("the kernel's device-mapper has no dm-crypt")
	}
	return nil
}
