// Package tool runs the programs by which service agents prepare something on their host.
package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Timeout bounds one run of a program. Making an OSD takes a second; on a slow disk, or one that is discarded first, some more.
const Timeout = 5 * time.Minute

// outputKept is how much of a failed program's output goes into the error, from its end.
const outputKept = 1024

// Require returns an error that says how to get a program that is missing.
func Require(program, pkg string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed on this host: install it with 'apt-get install %s'", program, pkg)
	}
	return nil
}

// Run runs a program that prepares something in the directory. The program holds a lock on the directory for as long as
// it lives, also when the agent dies meanwhile: the next agent then waits for its end instead of running a second one.
func Run(ctx context.Context, dir, program string, args ...string) error {
	return RunWith(ctx, nil, dir, program, args...)
}

// RunWith is Run of a program that inherits files, and with them the locks that they hold.
func RunWith(ctx context.Context, files []*os.File, dir, program string, args ...string) error {
	_, err := output(ctx, files, dir, program, args...)
	return err
}

// Output is Run, and returns what the program wrote to its standard output, also where it failed.
func Output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	return output(ctx, nil, dir, program, args...)
}

func output(ctx context.Context, files []*os.File, dir, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	lock, err := lockDirectory(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("while waiting for an earlier %s to end: %w", program, err)
	}
	defer lock.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.ExtraFiles = append([]*os.File{lock}, files...)
	// What was meant for a client of Ceph (CEPH_CONF, CEPH_ARGS …) is not for the daemons.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CEPH_") })
	// A child of the program could hold the pipe of its output open for ever.
	cmd.WaitDelay = time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := Do(cmd); err != nil {
		return out.Bytes(), fmt.Errorf("while running %s: %w: %s", program, err, tail(append(slices.Clone(out.Bytes()), complaints.Bytes()...)))
	}
	return out.Bytes(), nil
}

// tail is the end of what a program wrote. One of Ceph's that fails an assertion ends with a trace of its stack and all that it had not logged: why it
// failed stands far before.
func tail(out []byte) string {
	text := strings.TrimSpace(string(out))
	if len(text) <= outputKept {
		return text
	}
	why := cephErrors(text[:len(text)-outputKept])
	return why + "…" + text[len(text)-outputKept+len(why):]
}

// cephErrors has the first lines in which Ceph tells of an error, or of the assertion that failed, each once and cut to a length that leaves room for
// others; empty where there are none. Ceph's level of errors is -1 (Ceph docs, "Logging and Debugging").
func cephErrors(text string) string {
	var all []string
	size := 0
	for line := range strings.Lines(text) {
		_, what, is := strings.Cut(line, " -1 ")
		if strings.Contains(line, "FAILED ceph_assert") {
			what, is = line, true
		}
		what = strings.TrimSpace(what)
		what = what[:min(len(what), outputKept/6)]
		if is && what != "" && size+len(what) < outputKept*2/3 && !slices.Contains(all, what) {
			all, size = append(all, what), size+len(what)+1
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// lockDirectory takes the directory's lock, which ends when the last process that inherited the file closes it.
func lockDirectory(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("while locking %s: %w", f.Name(), err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
