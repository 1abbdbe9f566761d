package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

//go:embed bringup.sh
var bringUp string

// script brings the cluster up by hand.
type script struct {
	lab *hosts.Lab
	// dir is where everything of one round lies; the hosts see it, too.
	dir string
}

// run runs the script, and returns the CPU time of all that it waited for.
func (s *script) run(ctx context.Context) (cpu, error) {
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, err
	}
	var config strings.Builder
	for _, option := range slices.Sorted(maps.Keys(home.Quick)) {
		fmt.Fprintf(&config, "%s = %s\n", option, home.Quick[option])
	}
	quick := filepath.Join(s.dir, "quick.conf")
	if err := os.WriteFile(quick, []byte(config.String()), 0o644); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", bringUp, "bringup.sh", s.dir, quick)
	cmd.Env = append(os.Environ(), "MONCMD="+self)
	for i, h := range s.lab.Hosts() {
		cmd.Env = append(cmd.Env, fmt.Sprintf("HOST%d=%d", i+1, h.PID()), fmt.Sprintf("IP%d=%s", i+1, h.IP),
			fmt.Sprintf("DISK%d=%s", i+1, h.Disk(0).Path()))
	}
	// To a file and not to a pipe: the daemons keep it open.
	log, err := os.Create(filepath.Join(s.dir, "bringup.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the script failed: %w\n%s", err, bytes.TrimSpace(said))
	}
	return cpu{"script and its tools": cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// remove ends the daemons that the script has started, and no others, and removes its files.
func (s *script) remove() error {
	all, err := pids()
	if err != nil {
		return err
	}
	for _, pid := range all {
		err = errors.Join(err, s.kill(pid))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// kill ends a process if it is a daemon of the script.
func (s *script) kill(pid int) error {
	ours := func() bool {
		p := readProcess(pid)
		return strings.HasPrefix(p.program(), "ceph-") && p.option("-c") == filepath.Join(s.dir, "ceph.conf")
	}
	if !ours() {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended
	}
	defer unix.Close(fd)
	if !ours() { // from here on the number cannot pass to another process
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("while ending process %d: %w", pid, err)
	}
	const limit = 10 * time.Second
	for end := time.Now().Add(limit); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("while waiting for the end of process %d: %w", pid, err)
		}
	}
	return fmt.Errorf("process %d has not ended within %s", pid, limit)
}
