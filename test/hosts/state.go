package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// state is what another process must know to remove a lab.
type state struct {
	// Prefix starts the names of all that the kernel shows of the lab.
	Prefix string
	// Subnet is the x in 10.77.x.0/24.
	Subnet int
	// Owner is the program that made the lab. Unless Keep is set, the lab is of no use without it.
	Owner process
	Keep  bool
	Hosts []hostState
	Machine
}

type hostState struct {
	Name  string
	IP    string
	Share []string
	// Init is the first process; its PID is zero while the power is off.
	Init process
	// Disks are the files of the disks.
	Disks []string
}

// process is a process that cannot be mistaken for a later one with the same number.
type process struct {
	PID int
	// Start is when it started, in clock ticks since the boot (proc(5), stat, field 22).
	Start uint64
}

const stateFile = "lab.json"

func readState(dir string) (s state, err error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, fmt.Errorf("while reading the state of the lab: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("while reading the state of the lab in %s: %w", dir, err)
	}
	return s, nil
}

func writeState(dir string, s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("while writing the state of the lab: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(dir, stateFile), data, 0o644); err != nil {
		return fmt.Errorf("while writing the state of the lab: %w", err)
	}
	return nil
}

func thisProcess() (process, error) { return findProcess(os.Getpid()) }

func findProcess(pid int) (process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	// The second field is the program's name in parentheses, and may itself hold blanks and parentheses.
	rest := string(data[strings.LastIndexByte(string(data), ')')+1:])
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return process{}, fmt.Errorf("while reading /proc/%d/stat: it has %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return process{PID: pid, Start: start}, err
}

// open returns a pidfd of the process, or nil if it has ended.
func (p process) open() *os.File {
	if p.PID == 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// Checked after opening: from here on the number cannot pass to another process.
	if now, err := findProcess(p.PID); err != nil || now.Start != p.Start {
		f.Close()
		return nil
	}
	return f
}

// alive says whether the process runs. One that has ended and that its parent has not looked after yet does not.
func (p process) alive() bool {
	f := p.open()
	if f == nil {
		return false
	}
	defer f.Close()
	ended := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 0)
	return err != nil || n == 0
}

// labsDir is where labs lie whose Options name no directory.
func labsDir() string { return filepath.Join(os.TempDir(), "holdfast-labs") }

// lockMachine lets one program at a time choose names and subnets. It locks a directory that every machine has, so that
// no file is left.
func lockMachine() (unlock func(), err error) {
	d, err := os.Open("/run")
	if err != nil {
		return nil, fmt.Errorf("while locking the machine: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		d.Close()
		return nil, fmt.Errorf("while locking the machine: %w", err)
	}
	return func() { d.Close() }, nil
}

// sweep removes labs that have lost their program. What fails here is in the way of nobody, and is tried again.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(labsDir(), "*"))
	for _, dir := range dirs {
		if s, err := readState(dir); err == nil && !s.Keep && !s.Owner.alive() {
			_ = Destroy(dir)
		}
	}
}
