// Package stat tells what processes have used, for benchmarks.
package stat

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every architecture that Go knows.
const Tick = 10 * time.Millisecond

// Usage is what a process has used, from /proc/PID/stat (proc(5)).
type Usage struct {
	// Parent is the process that started it.
	Parent int
	// Own is the process's own CPU time, Children that of those of its children that it has waited for.
	Own, Children time.Duration
	// ChildFaults are the page faults of those of its children that it has waited for.
	ChildFaults int64
	// Resident is its memory in bytes.
	Resident int64
}

// Of reads what a process has used until now.
func Of(pid int) (Usage, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("while reading what process %d has used: %w", pid, err)
	}
	return Parse(string(data))
}

// Parse reads /proc/PID/stat. Its second field is the program's name in parentheses, which may hold anything.
func Parse(text string) (Usage, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return Usage{}, fmt.Errorf("a line of /proc/PID/stat has %d fields", len(fields))
	}
	var number [22]int64
	for i := 1; i < len(number); i++ { // the first is the state, a letter
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil && i <= 14 {
			return Usage{}, fmt.Errorf("while reading /proc/PID/stat: %w", err)
		}
		number[i] = n
	}
	return Usage{
		Parent:      int(number[1]),
		Own:         time.Duration(number[11]+number[12]) * Tick,
		Children:    time.Duration(number[13]+number[14]) * Tick,
		ChildFaults: number[8] + number[10],
		Resident:    number[21] * int64(os.Getpagesize()),
	}, nil
}

// FilePages is how much of a process's resident memory are pages of files, such as its program and a mapped database, in bytes. The system
// takes them back when it needs memory (proc_pid_status(5), RssFile).
func FilePages(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("while reading what memory process %d has: %w", pid, err)
	}
	_, after, _ := strings.Cut(string(data), "RssFile:")
	number, _, found := strings.Cut(after, " kB")
	if !found {
		return 0, fmt.Errorf("/proc/%d/status tells nothing of pages of files", pid)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("while reading /proc/%d/status: %w", pid, err)
	}
	return kib << 10, nil
}

// Load is the machine's load average now: what others do on it makes all times longer.
func Load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	var one, five, fifteen string
	if _, err := fmt.Sscan(string(data), &one, &five, &fifteen); err != nil {
		return ""
	}
	return one + " " + five + " " + fifteen
}
