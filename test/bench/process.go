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
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every architecture that Go knows.
const tick = 10 * time.Millisecond

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

// usage is what a process has used, from /proc/PID/stat (proc(5)).
type usage struct {
	parent int
	// own is the process's own CPU time, children that of those of its children that it has waited for.
	own, children time.Duration
	// resident is its memory in bytes.
	resident int64
}

func usageOf(pid int) (usage, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("while reading what process %d has used: %w", pid, err)
	}
	return parseStat(string(data))
}

// parseStat reads /proc/PID/stat. Its second field is the program's name in parentheses, which may hold anything.
func parseStat(text string) (usage, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return usage{}, fmt.Errorf("a line of /proc/PID/stat has %d fields", len(fields))
	}
	var number [22]int64
	for i := 1; i < len(number); i++ { // the first is the state, a letter
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil && i <= 14 {
			return usage{}, fmt.Errorf("while reading /proc/PID/stat: %w", err)
		}
		number[i] = n
	}
	return usage{
		parent:   int(number[1]),
		own:      time.Duration(number[11]+number[12]) * tick,
		children: time.Duration(number[13]+number[14]) * tick,
		resident: number[21] * int64(os.Getpagesize()),
	}, nil
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
	return time.Duration(user+nice+system+irq+soft+steal) * tick, nil
}
