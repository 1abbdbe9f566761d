// Package vm runs a script on a virtual machine with Debian's stock kernel, on the network of a lab: for clients that are part of the
// kernel, which the machine that the tests run on may not have. The processor is emulated by QEMU, so that nothing is asked of the machine.
package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Options say what the machine has and does.
type Options struct {
	// Kernel is the directory that hack/vm-kernel has filled.
	Kernel string
	// Modules are loaded first, with those that they need.
	Modules []string
	// Files are laid into the machine's root by their names. Nobody else on this machine can read them.
	Files map[string][]byte
	// Disk is the size of a disk in bytes, which the machine has as /dev/vda where the module virtio_blk is loaded. 0 stands for none.
	Disk int64
	// Script is carried out by BusyBox's shell with -eu. What it prints appears on the console.
	Script string
}

// VM is a virtual machine that runs.
type VM struct {
	console string // the file that the console is written to
	done    chan struct{}
	err     error // valid once done is closed
}

const (
	// limit bounds what a machine is waited for. It boots in three seconds.
	limit = 2 * time.Minute
	// lookAgain is how often the console is read.
	lookAgain = 100 * time.Millisecond
)

// Start boots a machine on the lab's network. It is switched off at the end of the test at the latest.
func Start(t hosts.T, lab *hosts.Lab, o Options) *VM {
	t.Helper()
	dir := filepath.Join(lab.Dir, "vm")
	tap := lab.Tap(t)
	ctx, stop := context.WithCancel(context.Background())
	if err := makeImage(ctx, dir, tap.IP, o); err != nil {
		stop()
		t.Fatalf("vm: %v", err)
	}
	v := &VM{console: filepath.Join(dir, "console"), done: make(chan struct{})}
	t.Cleanup(func() {
		stop()
		<-v.done
		if t.Failed() {
			t.Logf("the console of the virtual machine:\n%s", v.Console(t))
		}
	})
	disk, err := makeDisk(dir, o.Disk)
	if err != nil {
		stop()
		t.Fatalf("vm: %v", err)
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append(disk, "-accel", "tcg", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:"+v.console, "-kernel", filepath.Join(o.Kernel, "vmlinuz"), "-initrd", filepath.Join(dir, "initrd"),
		"-append", "console=ttyS0 quiet panic=-1", "-device", "virtio-rng-pci",
		"-netdev", "tap,id=lab,script=no,downscript=no,ifname="+tap.Link, "-device", "virtio-net-pci,netdev=lab,romfile=,mac="+tap.MAC.String())...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	go func() {
		defer close(v.done)
		runtime.LockOSThread() // the signal comes with the end of the thread that started the process
		if out, err := cmd.CombinedOutput(); err != nil {
			v.err = fmt.Errorf("%w: %s", err, out)
		}
	}()
	return v
}

// Console is what the machine has printed so far.
func (v *VM) Console(t hosts.T) string {
	t.Helper()
	text, err := os.ReadFile(v.console)
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("vm: while reading the console: %v", err)
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

// Await waits until the machine has printed a line that begins with a text.
func (v *VM) Await(t hosts.T, text string) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(lookAgain) {
		if strings.Contains("\n"+v.Console(t), "\n"+text) {
			return
		}
		select {
		case <-v.done:
			t.Fatalf("vm: it went off (%v) without a word of %q", v.err, text)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("vm: no word of %q within %s", text, limit)
		}
	}
}

var ended = regexp.MustCompile(`(?m)^vm: the script ended with (\d+)$`)

// Wait waits until the machine has switched itself off, and returns what it printed. A script that failed fails the test.
func (v *VM) Wait(t hosts.T) string {
	t.Helper()
	select {
	case <-v.done:
	case <-time.After(limit):
		t.Fatalf("vm: it has not ended within %s", limit)
	}
	out := v.Console(t)
	if found := ended.FindStringSubmatch(out); v.err != nil || found == nil || found[1] != "0" {
		t.Fatalf("vm: the script failed: %v %v", v.err, found)
	}
	return out
}
