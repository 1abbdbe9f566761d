package detached

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// killSession kills what is left of a session: the processes that the daemon started and that outlived it. A process
// belongs to it when it is in the session and carries the daemon's name in its environment.
func killSession(name string, leader int) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if pid, err := strconv.Atoi(e); err == nil && pid != leader && member(pid, name, leader) {
			errs = append(errs, killMember(pid, name, leader))
		}
	}
	return errors.Join(errs...)
}

// killMember looks again after it has opened the pidfd, so that it cannot hit a process that got the PID in between.
func killMember(pid int, name string, leader int) error {
	fd, err := openPIDFD(pid)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer fd.Close()
	if !member(pid, name, leader) {
		return nil
	}
	if err := signal(fd, unix.SIGKILL); err != nil {
		return err
	}
	return awaitEnd(fd)
}

func member(pid int, name string, leader int) bool {
	st, err := readStat(pid)
	if err != nil || st.session != leader || st.zombie() {
		return false
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	want := []byte(marker + "=" + name)
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(kv, want) {
			return true
		}
	}
	return false
}
