// Package vm runs a script on a virtual machine with Debian's stock kernel, on the network of a lab: for what is part of the kernel (clients, encryption,
// logical volumes), which the machine that the tests run on may not have. The processor is emulated by QEMU, so that nothing is asked of the machine.
package vm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
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
	// Disks are the sizes in bytes of the disks that the machine has as /dev/vda and so on, where the module virtio_blk is loaded.
	Disks []int64
	// Memory is in MiB; 0 stands for 512.
	Memory int
	// Processors is how many the machine has; 0 stands for one.
	Processors int
	// Script is carried out by BusyBox's shell with -eu. What it prints appears on the console.
	Script string
}

// VM is a virtual machine.
type VM struct {
	dir  string
	args []string // what QEMU is told

	stop func()
	done chan struct{}
	err  error // valid once done is closed
}

const (
	// Limit bounds what a machine is waited for. It boots in three seconds; but its processor is emulated, and an OSD that starts there takes one to two
	// minutes where the real one is slow, or shared.
	Limit = 6 * time.Minute
	// lookAgain is how often the console is read.
	lookAgain = 100 * time.Millisecond
	// cpu is one that Ceph runs on: it takes SSE 4 for granted, as erasure codes are computed with it.
	cpu = "Nehalem"
)

// Start makes a machine on the lab's network, and switches it on. It is switched off at the end of the test at the latest.
func Start(t hosts.T, lab *hosts.Lab, o Options) *VM {
	t.Helper()
	v := &VM{dir: filepath.Join(lab.Dir, "vm")}
	tap := lab.Tap(t)
	if err := makeImage(context.Background(), v.dir, tap.IP, o); err != nil {
		t.Fatalf("vm: %v", err)
	}
	disks, err := makeDisks(v.dir, o.Disks)
	if err != nil {
		t.Fatalf("vm: %v", err)
	}
	v.args = append(disks, "-accel", "tcg", "-cpu", cpu, "-m", strconv.Itoa(cmp.Or(o.Memory, 512)), "-smp", strconv.Itoa(cmp.Or(o.Processors, 1)), "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:"+v.console(), "-kernel", filepath.Join(o.Kernel, "vmlinuz"), "-initrd", filepath.Join(v.dir, "initrd"),
		"-append", "console=ttyS0 quiet panic=-1", "-device", "virtio-rng-pci",
		"-netdev", "tap,id=lab,script=no,downscript=no,ifname="+tap.Link, "-device", "virtio-net-pci,netdev=lab,romfile=,mac="+tap.MAC.String())
	v.PowerOn(t)
	t.Cleanup(func() {
		v.PowerOff()
		if t.Failed() {
			t.Logf("the console of the virtual machine:\n%s", v.Console(t))
		}
	})
	return v
}

// PowerOn boots the machine, which is off. Its disks are as they were, and nothing else.
func (v *VM) PowerOn(t hosts.T) {
	t.Helper()
	if err := os.RemoveAll(v.console()); err != nil {
		t.Fatalf("vm: while emptying the console: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	v.stop, v.done, v.err = stop, done, nil
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", v.args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	go func() {
		defer close(done)
		runtime.LockOSThread() // the signal comes with the end of the thread that started the process
		if out, err := cmd.CombinedOutput(); err != nil {
			v.err = fmt.Errorf("%w: %s", err, out)
		}
	}()
}

// PowerOff takes the power away. What the machine has written to its disks stays, as this machine has it in memory.
func (v *VM) PowerOff() {
	v.stop()
	<-v.done
}

// Disk is the file that one of the machine's disks is; the first one is number 0.
func (v *VM) Disk(number int) string { return diskFile(v.dir, number) }

// console is the file that the console is written to.
func (v *VM) console() string { return filepath.Join(v.dir, "console") }

// Console is what the machine has printed so far.
func (v *VM) Console(t hosts.T) string {
	t.Helper()
	text, err := os.ReadFile(v.console())
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("vm: while reading the console: %v", err)
	}
	return strings.ReplaceAll(string(text), "\r", "")
}

// Await waits until the machine has printed a line that begins with a text.
func (v *VM) Await(t hosts.T, text string) {
	t.Helper()
	for end := time.Now().Add(Limit); ; time.Sleep(lookAgain) {
		if strings.Contains("\n"+v.Console(t), "\n"+text) {
			return
		}
		select {
		case <-v.done:
			t.Fatalf("vm: it went off (%v) without a word of %q", v.err, text)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("vm: no word of %q within %s", text, Limit)
		}
	}
}

var ended = regexp.MustCompile(`(?m)^vm: the script ended with (\d+)$`)

// Wait waits until the machine has switched itself off, and returns what it printed. A script that failed fails the test.
func (v *VM) Wait(t hosts.T) string {
	t.Helper()
	select {
	case <-v.done:
	case <-time.After(Limit):
		t.Fatalf("vm: it has not ended within %s", Limit)
	}
	out := v.Console(t)
	if found := ended.FindStringSubmatch(out); v.err != nil || found == nil || found[1] != "0" {
		t.Fatalf("vm: the script failed: %v %v", v.err, found)
	}
	return out
}
