package detached

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errGone says that a process has ended, or that its PID belongs to another one now.
var errGone = errors.New("the process is gone")

// identity tells one process from every other that had or will have its PID.
type identity struct {
	PID int `json:"pid"`
	// StartTicks is when the process started, in clock ticks after the kernel did (field 22 of /proc/PID/stat). The exec
	// of another program does not change it.
	StartTicks uint64 `json:"startTicks"`
	// BootID is /proc/sys/kernel/random/boot_id.
	BootID string `json:"bootID"`
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("while reading the boot ID: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// identify returns the identity of a process that cannot end without being noticed, such as a child.
func identify(pid int) (identity, error) {
	boot, err := bootID()
	if err != nil {
		return identity{}, err
	}
	st, err := readStat(pid)
	if err != nil {
		return identity{}, err
	}
	return identity{PID: pid, StartTicks: st.start, BootID: boot}, nil
}

// open returns a pidfd of the process, or errGone.
func (id identity) open() (*os.File, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if id.PID <= 0 || id.BootID != boot {
		return nil, errGone
	}
	fd, err := openPIDFD(id.PID)
	if err != nil {
		return nil, err
	}
	// The pidfd is opened before the start time is read: when the times agree now, the process was there all the while.
	st, err := readStat(id.PID)
	if err == nil && (st.start != id.StartTicks || st.zombie()) {
		err = errGone
	}
	if err != nil {
		return nil, errors.Join(err, fd.Close())
	}
	return fd, nil
}

func openPIDFD(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("while opening a pidfd: %w", err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// awaitEnd returns nil when the process has ended, and another error when the pidfd was closed before.
func awaitEnd(pidfd *os.File) error {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var pollErr error
	err = conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		var n int
		for {
			n, pollErr = unix.Poll(fds, 0)
			if !errors.Is(pollErr, unix.EINTR) {
				return n > 0 || pollErr != nil
			}
		}
	})
	return errors.Join(err, pollErr)
}

// signal sends a signal. A process that has ended is no error.
func signal(pidfd *os.File, sig unix.Signal) error {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var sigErr error
	if err := conn.Control(func(fd uintptr) { sigErr = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sigErr, unix.ESRCH) {
		return nil
	}
	return sigErr
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	state   byte
	session int
	start   uint64
}

func (s stat) zombie() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return stat{}, errGone
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads the fields behind the name of the program, which may itself hold spaces and parentheses.
func parseStat(b []byte) (stat, error) {
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return stat{}, errors.New("unknown form of /proc/PID/stat")
	}
	session, err1 := strconv.Atoi(f[3])
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	return stat{state: f[0][0], session: session, start: start}, errors.Join(err1, err2)
}
