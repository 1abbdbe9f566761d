package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// watchDevices has the host looked at whenever the kernel tells of a change of a block device, until ctx ends. Without these
// messages, changes are seen at the next regular look.
func (a *agent) watchDevices(ctx context.Context) {
	f, err := openUevents()
	if err != nil {
		a.log.Warn("changes of devices are noticed only at the next regular scan", "error", err)
		return
	}
	release := context.AfterFunc(ctx, func() { f.Close() })
	defer release()
	buf := make([]byte, 8192)
	for {
		n, err := f.Read(buf)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS):
			a.askReport() // some were lost
		case err != nil:
			a.log.Warn("changes of devices are noticed only at the next regular scan", "error", err)
			f.Close()
			return
		case aboutBlock(buf[:n]):
			a.askReport()
		}
	}
}

// openUevents opens the kernel's own messages, which need no udevd.
func openUevents() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("while opening the kernel's device messages: %w", err)
	}
	const kernelGroup = 1
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		return nil, errors.Join(fmt.Errorf("while opening the kernel's device messages: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "uevents"), nil
}

func aboutBlock(msg []byte) bool {
	for part := range bytes.SplitSeq(msg, []byte{0}) {
		if string(part) == "SUBSYSTEM=block" {
			return true
		}
	}
	return false
}
