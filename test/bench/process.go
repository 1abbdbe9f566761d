package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// process is one look at a process in /proc.
type process struct {
	pid  int
	args []string
}

// program is the name of what runs, without its directory.
func (p process) program() string {
	if len(p.args) == 0 {
		return ""
	}
	return filepath.Base(p.args[0])
}

// option is the value of an option such as -c.
func (p process) option(name string) string {
	if i := slices.Index(p.args, name); i >= 0 && i+1 < len(p.args) {
		return p.args[i+1]
	}
	return ""
}

// daemon says whether this is a daemon of Ceph, and not a program that only prepares something for one.
func (p process) daemon() bool {
	return strings.HasPrefix(p.program(), "ceph-") && slices.Contains(p.args, "-i") && !slices.Contains(p.args, "--mkfs")
}

// readProcess returns a process without arguments when it has ended, or is a thread of the kernel.
func readProcess(pid int) process {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	p := process{pid: pid}
	for arg := range bytes.SplitSeq(bytes.TrimRight(line, "\x00"), []byte{0}) {
		p.args = append(p.args, string(arg))
	}
	if p.args[0] == "" {
		p.args = nil
	}
	return p
}

// pids lists all processes of the machine.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("while listing the processes: %w", err)
	}
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// namespaceOf names the PID namespace that a process is in; empty when it has ended.
func namespaceOf(pid int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return name
}

// machineBusy is the CPU time that the whole machine has used since its boot.
func machineBusy() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	var user, nice, system, idle, wait, irq, soft, steal int64
	_, err = fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal)
	if err != nil {
		return 0, fmt.Errorf("while reading /proc/stat: %w", err)
	}
	return time.Duration(user+nice+system+irq+soft+steal) * stat.Tick, nil
}
