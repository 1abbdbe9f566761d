package kube

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// Control makes a control plane without nodes on loopback, in some seconds. It ends with the test.
// A pod stays Pending: there is no scheduler, and no kubelet.
func Control(t hosts.T) *Plane {
	t.Helper()
	return ControlWith(t, nil)
}

// ControlWith is Control with further flags of its programs, such as those of kube-apiserver.
func ControlWith(t hosts.T, flags map[string][]string) *Plane {
	t.Helper()
	bin := programs(t)
	ports, err := loopback.FreePorts(3)
	if err != nil {
		t.Fatalf("kube: %v", err)
	}
	dir, err := os.MkdirTemp("", "holdfast-kube-")
	if err != nil {
		t.Fatalf("kube: while making a directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is found by its name
	p := newPlane(t, bin, dir, &machinePlace{dir: dir, free: [3]int(ports)}, flags)
	p.start(t)
	return p
}

// machinePlace is this machine. Programs there end with the test.
type machinePlace struct {
	dir  string
	free [3]int
}

func (m *machinePlace) address() string { return "127.0.0.1" }
func (m *machinePlace) ports() [3]int   { return m.free }
func (m *machinePlace) nodes() bool     { return false }

func (m *machinePlace) launch(t hosts.T, program string, args ...string) Process {
	t.Helper()
	name := filepath.Base(program)
	p := &machineProcess{cmd: exec.CommandContext(context.Background(), program, args...), done: make(chan struct{})}
	log, err := os.OpenFile(filepath.Join(m.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatalf("kube: while opening the log of %s: %v", name, err)
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, m.dir
	// It dies with this program, however that ends, and Ctrl-C at the terminal is for this program
	// alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.start(); err != nil {
		t.Fatalf("kube: while starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Kill(t)
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-8<<10):])
		}
	})
	return p
}

// machineProcess is a program on this machine.
type machineProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts the program from a thread that lives as long: the kernel kills it when that thread
// ends.
func (p *machineProcess) start() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // one that was killed says so by an error
		close(p.done)
	}()
	return <-started
}

func (p *machineProcess) PID() int              { return p.cmd.Process.Pid }
func (p *machineProcess) Done() <-chan struct{} { return p.done }

func (p *machineProcess) Signal(t hosts.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("kube: while sending %s to %s: %v", sig, p.cmd.Path, err)
	}
}

func (p *machineProcess) Kill(t hosts.T) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	<-p.done
}
