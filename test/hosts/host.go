package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Host is one machine of a lab.
type Host struct {
	// Name is the host's name, as in uname.
	Name string
	// IP is its address.
	IP string

	lab    *Lab
	number int // from 0

	mu    sync.Mutex // held over changes of power, link and disks
	cut   bool
	slow  bool
	disks []*Disk
}

// host makes the handle of a host from the lab's state.
func (l *Lab) host(number int) *Host {
	s := l.state.Hosts[number]
	h := &Host{Name: s.Name, IP: s.IP, lab: l, number: number}
	for _, file := range s.Disks {
		h.disks = append(h.disks, &Disk{host: h, file: file, loop: findLoop(file)})
	}
	return h
}

// Dir is the host's directory on the machine. Its own /var and /etc/ceph lie below Dir/root, the logs of what Start
// started below Dir/logs.
func (h *Host) Dir() string { return filepath.Join(h.lab.Dir, h.Name) }

// Path is where the machine sees a file of the host's own /var or /etc/ceph.
func (h *Host) Path(file string) string { return filepath.Join(h.Dir(), "root", file) }

// link is the machine's end of the host's cable.
func (h *Host) link() string { return fmt.Sprintf("%s-%d", h.lab.state.Prefix, h.number+1) }

// On says whether the host has power.
func (h *Host) On() bool { return h.init().alive() }

// PID is the host's first process as the machine sees it, or 0 while the power is off. 'nsenter -t PID -a' enters the host.
func (h *Host) PID() int { return h.init().PID }

func (h *Host) init() process {
	h.lab.mu.Lock()
	defer h.lab.mu.Unlock()
	return h.lab.state.Hosts[h.number].Init
}

func (h *Host) setInit(p process) error {
	return h.lab.update(func(s *state) { s.Hosts[h.number].Init = p })
}

// make makes the host's directories and disks and switches it on.
func (h *Host) make(o Options) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, dir := range []string{
		"logs", "disks", "root/etc/ceph", "root/var/lib/ceph", "root/var/lib/dpkg", "root/var/log/ceph",
		"root/var/cache", "root/var/tmp",
	} {
		if err := os.MkdirAll(filepath.Join(h.Dir(), dir), 0o755); err != nil {
			return fmt.Errorf("while making the directories of host %s: %w", h.Name, err)
		}
	}
	for name, target := range map[string]string{"root/var/run": "/run", "root/var/lock": "/run/lock"} {
		if err := os.Symlink(target, filepath.Join(h.Dir(), name)); err != nil {
			return fmt.Errorf("while making the directories of host %s: %w", h.Name, err)
		}
	}
	for range o.Disks {
		if _, err := h.addDisk(o.DiskSize); err != nil {
			return err
		}
	}
	return h.boot()
}

// PowerOn switches the host on again: nothing runs in it, /run and /tmp are empty, /var and the disks are as they were.
func (h *Host) PowerOn(t T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.init().alive() {
		t.Fatalf("hosts: host %s is on already", h.Name)
	}
	if err := h.boot(); err != nil {
		t.Fatalf("hosts: %v", err)
	}
}

// PowerOff takes the power away: all processes are gone at once, none of them is asked. What was written is not lost even
// without fsync, as the machine's page cache stays; to lose it takes a virtual machine.
func (h *Host) PowerOff(t T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.powerOff(); err != nil {
		t.Fatalf("hosts: %v", err)
	}
}

func (h *Host) powerOff() error {
	if err := kill(h.init()); err != nil {
		return fmt.Errorf("while switching off host %s: %w", h.Name, err)
	}
	h.slow = false
	return errors.Join(h.unplug(), removeCgroups(h.Cgroup()), h.setInit(process{}))
}

// kill ends a host's first process and waits until it and with it all others are gone.
func kill(init process) error {
	pidfd := init.open()
	if pidfd == nil {
		return nil
	}
	defer pidfd.Close()
	if err := unix.PidfdSendSignal(int(pidfd.Fd()), unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return waitGone(int(pidfd.Fd()), limit)
}

// waitGone waits for the end of a process. The first process of a PID namespace ends last of all; it waits for those that
// were started from outside until they are waited for there.
func waitGone(pidfd int, timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; {
		left := time.Until(end)
		if left <= 0 {
			return fmt.Errorf("it has not ended within %s: a command that was started in it may not have been waited for", timeout)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Cut pulls the host's cable: nothing comes in or goes out, and nobody is told.
func (h *Host) Cut(t T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.setLink(false); err != nil {
		t.Fatalf("hosts: %v", err)
	}
	h.cut = true
}

// Restore undoes Cut and Slow.
func (h *Host) Restore(t T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.setLink(true); err != nil {
		t.Fatalf("hosts: %v", err)
	}
	h.cut = false
	if !h.slow {
		return
	}
	if err := h.netem("del"); err != nil {
		t.Fatalf("hosts: %v", err)
	}
	h.slow = false
}
