// Package listener finds which program listens on a port, as the kernel has it.
package listener

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// Of is the program that listens on a TCP port of this machine's network: its name and process id. An error means that
// there is none, or that it cannot be seen.
func Of(port string) (name string, pid int, err error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no port", port)
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", 0, err
	}
	inodes, err := listening(fs, number)
	if err != nil {
		return "", 0, err
	}
	processes, err := fs.AllProcs()
	if err != nil {
		return "", 0, err
	}
	for _, p := range processes {
		open, err := p.FileDescriptorTargets()
		if err != nil { // it ended meanwhile
			continue
		}
		if slices.ContainsFunc(inodes, func(socket string) bool { return slices.Contains(open, socket) }) {
			name, err := p.Comm()
			return name, p.PID, err
		}
	}
	return "", 0, fmt.Errorf("no process that can be seen listens on port %s", port)
}

// listening are the sockets that listen on a port, as links of descriptors name them.
func listening(fs procfs.FS, port uint64) (sockets []string, err error) {
	const stateListen = 0x0a // TCP_LISTEN of the kernel's include/net/tcp_states.h
	four, err := fs.NetTCP()
	if err != nil {
		return nil, err
	}
	six, _ := fs.NetTCP6() // a kernel may have no IPv6
	for _, line := range append(four, six...) {
		if line.LocalPort == port && line.St == stateListen {
			sockets = append(sockets, fmt.Sprintf("socket:[%d]", line.Inode))
		}
	}
	return sockets, nil
}

// Text names the program that listens on a port; "another program" where none can be seen.
func Text(port string) string {
	name, pid, err := Of(port)
	if err != nil {
		return "another program"
	}
	return fmt.Sprintf("%s (process %d)", name, pid)
}
