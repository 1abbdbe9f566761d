package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a command that keeps running in a host.
type Process struct {
	// Log is the file that its output goes to.
	Log string

	host *Host
	cmd  *Cmd
	done chan struct{}
	err  error // valid once done is closed
}

// Start starts a command that keeps running; it ends at the latest with the host's power. Its output goes to a file
// called after the command, which is printed when the test fails.
func (h *Host) Start(t T, name string, args ...string) *Process {
	t.Helper()
	return h.Launch(t, filepath.Base(name), h.Command(context.Background(), name, args...))
}

// Launch is Start for a command that was prepared before; the log is called after name.
func (h *Host) Launch(t T, name string, cmd *Cmd) *Process {
	t.Helper()
	p := &Process{Log: filepath.Join(h.Dir(), "logs", name+".log"), host: h, cmd: cmd, done: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatalf("hosts: while opening the log of %s: %v", name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A session of its own: Ctrl-C at the terminal is for this program alone.
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		t.Fatalf("hosts: while starting %s on host %s: %v", name, h.Name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p
}

// PID is the process as the machine sees it; inside the host it has another number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended, as from exec.Cmd.Wait. It may only be called after Done.
func (p *Process) Err() error { return p.err }

// Signal sends a signal; a process that has ended already is no error.
func (p *Process) Signal(t T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("hosts: while sending %s to %s: %v", sig, p.cmd.Path, err)
	}
}

// Kill is kill -9, and waits for the end.
func (p *Process) Kill(t T) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.await(t, limit)
}

// Stop asks the process to end (SIGTERM) and waits for it; one that has not ended after the timeout fails the test.
func (p *Process) Stop(t T, timeout time.Duration) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	p.await(t, timeout)
}

func (p *Process) await(t T, timeout time.Duration) {
	t.Helper()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		t.Fatalf("hosts: %s on host %s has not ended within %s", fmt.Sprint(p.cmd.Args), p.host.Name, timeout)
	}
}
