// Package uevent reads the kernel's messages about changes of devices (man 7 netlink,
// NETLINK_KOBJECT_UEVENT).
package uevent

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens the kernel's own messages, which need no udevd. Each read returns one message.
func Open() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("while opening the kernel's device messages: %w", err)
	}
	const kernelGroup = 1
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		return nil, errors.Join(fmt.Errorf("while opening the kernel's device messages: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "uevents"), nil
}

// AboutBlock says whether a message is about a block device.
func AboutBlock(msg []byte) bool {
	for part := range bytes.SplitSeq(msg, []byte{0}) {
		if string(part) == "SUBSYSTEM=block" {
			return true
		}
	}
	return false
}
