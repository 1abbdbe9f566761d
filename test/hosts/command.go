package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/inventory"
)

// Cmd is an exec.Cmd that runs in a host, as a child of this program: its PID, signals and exit status are the real ones.
// Whoever calls Start must call Wait, or the host's power cannot be switched off.
type Cmd struct {
	*exec.Cmd
	host *Host
}

// Command prepares a command in the host. It sees this program's environment, and a device filter that leaves it the disks
// of its own host.
func (h *Host) Command(ctx context.Context, name string, args ...string) *Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), h.lab.env...),
		labVariable+"="+h.lab.state.Prefix,
		inventory.FilterVariable+"="+h.DeviceFilter(),
		"HOSTNAME="+h.Name,
		"TMPDIR=/tmp",
	)
	cmd.Dir = "/"
	// A killed command may leave children that hold its output open.
	cmd.WaitDelay = 5 * time.Second
	return &Cmd{Cmd: cmd, host: h}
}

// DeviceFilter is the pattern for inventory.Filter that matches the host's own disks. Commands get it in their environment.
func (h *Host) DeviceFilter() string { return "file-" + h.Dir() + "/disks/*" }

// Start is exec.Cmd.Start, inside the host.
func (c *Cmd) Start() error { return c.host.enter(c.Cmd.Start) }

// Run is exec.Cmd.Run, inside the host.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is exec.Cmd.Output, inside the host. The error tells what the command wrote to its standard error.
func (c *Cmd) Output() ([]byte, error) {
	var out, complaint bytes.Buffer
	c.Stdout = &out
	if c.Stderr == nil {
		c.Stderr = &complaint
	}
	err := c.Run()
	if err != nil && complaint.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), err
}

// CombinedOutput is exec.Cmd.CombinedOutput, inside the host.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}

// enter calls f on a thread inside the host; a process that f starts is in the host, too. The thread cannot leave, and
// ends.
func (h *Host) enter(f func() error) error {
	init := h.init().open()
	if init == nil {
		return fmt.Errorf("host %s is off", h.Name)
	}
	defer init.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked, which ends the thread with the goroutine
		// Threads share their root and working directory; a mount namespace is only entered by one that does not.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- fmt.Errorf("while entering host %s: %w", h.Name, err)
			return
		}
		if err := unix.Setns(int(init.Fd()), namespaces); err != nil {
			done <- fmt.Errorf("while entering host %s: %w", h.Name, err)
			return
		}
		err := f()
		if errors.Is(err, unix.ENOMEM) { // fork in a PID namespace that has lost its first process
			err = fmt.Errorf("host %s is off: %w", h.Name, err)
		}
		done <- err
	}()
	return <-done
}

// Dial connects from inside the host, as its own processes do.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.enter(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Try runs a command in the host and returns its standard output without blanks at the end.
func (h *Host) Try(ctx context.Context, name string, args ...string) (string, error) {
	out, err := h.Command(ctx, name, args...).Output()
	if err != nil {
		err = fmt.Errorf("on host %s: %s: %w", h.Name, strings.Join(append([]string{name}, args...), " "), err)
	}
	return strings.TrimRight(string(out), " \n"), err
}

// Run is Try for commands that must not fail.
func (h *Host) Run(t T, ctx context.Context, name string, args ...string) string { //nolint:revive // t first, as in helpers of tests
	t.Helper()
	out, err := h.Try(ctx, name, args...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}
