// Package hosts makes machines out of namespaces, for tests and for the demo: each host has its own network with an own
// address, mounts, processes, host name, /var, /run and /tmp, and virtual disks. Everything else (programs, libraries, /dev)
// is shared with the machine. SIGKILL of its first process is a power-off; its link can be cut or made slow; its disks
// can be pulled and come back under another name.
//
//	func TestMain(m *testing.M) { hosts.MaybeInit(); os.Exit(m.Run()) }
//
//	func TestSomething(t *testing.T) {
//		lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
//		h := lab.Host(1)
//		server := h.Start(t, "holdfast", "server", "--init")
//		h.Run(t, t.Context(), "ceph", "-s")
//		h.PowerOff(t)
//		h.PowerOn(t)
//	}
//
// It needs root and says so; it never passes a test that it could not run. A lab is removed at the end of its test, and
// the test fails if anything is left. Each lab has names and a subnet of its own, so that several can run at a time; one
// whose program was killed is removed by the next one, or by Destroy.
package hosts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Every command in a host is started from a thread that has entered the host's namespaces and ends afterwards (see
// Host.enter). The main thread cannot end: it would be left inside the host, and /proc/self describes the main thread. So
// it is kept for the main goroutine.
func init() { runtime.LockOSThread() }

// T is the part of testing.TB that this package uses. Script makes one for programs that are not tests.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// Options say what to make. The zero value is one host without disks.
type Options struct {
	// Count is the number of hosts; zero means 1. They are called h1, h2, …
	Count int
	// Disks is the number of disks of each host.
	Disks int
	// DiskSize is the size of each disk in bytes; zero means 10 GiB. Disks are sparse files, so size costs nothing.
	DiskSize int64
	// Dir is where everything of the lab lies; it must not exist. Empty means a new directory below os.TempDir().
	Dir string
	// Share lists directories of the machine that the hosts see as well, where their own /tmp or /var would hide them. The
	// lab's directory, and the working directory with the Go module around it, are always shared.
	Share []string
	// Env are variables, as "name=value", that commands in the hosts see beside this program's own.
	Env []string
	// Keep lets the lab live on after the test or program, until Destroy.
	Keep bool
	// Machine is what hosts have beyond what a daemon needs.
	Machine
}

// Machine is what hosts need that start containers.
type Machine struct {
	// Shared lets mounts propagate within a host, from its own to those of containers and back, as on
	// a real machine.
	Shared bool
	// Cgroup gives each host a control group of its own in all hierarchies: see Host.Cgroup.
	Cgroup bool
}

// Lab is a set of hosts on one network. Its methods are safe for concurrent use.
type Lab struct {
	// Dir is where everything of the lab lies.
	Dir string
	// Gateway is the address of the machine itself in the lab's network.
	Gateway string

	env   []string
	mu    sync.Mutex
	state state
	hosts []*Host
}

// limit bounds each step of making or removing a lab.
const limit = 30 * time.Second

// New makes a lab, and has it removed and checked for leftovers when the test ends. When the test failed, the ends of all
// logs are printed first.
func New(t T, o Options) *Lab {
	t.Helper()
	lab, err := create(o)
	if err != nil {
		t.Fatalf("hosts: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			lab.Diagnose(t)
		}
		if !o.Keep {
			if err := Destroy(lab.Dir); err != nil {
				t.Errorf("hosts: %v", err)
			}
			lab.Leftovers(t)
		}
	})
	return lab
}

// Open returns a lab that another program made with Options.Keep.
func Open(t T, dir string) *Lab {
	t.Helper()
	s, err := readState(dir)
	if err != nil {
		t.Fatalf("hosts: %v", err)
	}
	return fromState(dir, s)
}

func fromState(dir string, s state) *Lab {
	lab := &Lab{Dir: dir, Gateway: address(s.Subnet, 1), state: s}
	for i := range s.Hosts {
		lab.hosts = append(lab.hosts, lab.host(i))
	}
	return lab
}

// Hosts returns all hosts in order.
func (l *Lab) Hosts() []*Host { return l.hosts }

// Host returns a host; the first one is number 1.
func (l *Lab) Host(number int) *Host { return l.hosts[number-1] }

func create(o Options) (lab *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("making hosts out of namespaces needs root: run this with sudo")
	}
	if o.Count == 0 {
		o.Count = 1
	}
	if o.DiskSize == 0 {
		o.DiskSize = 10 << 30
	}
	dir, s, err := reserve(o)
	if dir != "" {
		defer func() {
			if err != nil {
				err = errors.Join(err, Destroy(dir))
			}
		}()
	}
	if err != nil {
		return nil, err
	}
	lab = fromState(dir, s)
	lab.env = o.Env
	var group errgroup.Group
	for _, h := range lab.hosts {
		group.Go(func() error { return h.make(o) })
	}
	return lab, group.Wait()
}

// reserve chooses the lab's name and subnet, makes its bridge and directory, and writes its first state. Other labs that
// are made at the same time wait, so that no two choose the same.
func reserve(o Options) (dir string, s state, err error) {
	unlock, err := lockMachine()
	if err != nil {
		return "", s, err
	}
	defer unlock()
	sweep()
	self, err := thisProcess()
	if err != nil {
		return "", s, err
	}
	s = state{Prefix: fmt.Sprintf("hf%04x", rand.N(1<<16)), Owner: self, Keep: o.Keep, Machine: o.Machine}
	if s.Subnet, err = freeSubnet(); err != nil {
		return "", s, err
	}
	if dir, err = filepath.Abs(o.Dir); o.Dir == "" {
		dir, err = filepath.Join(labsDir(), s.Prefix), nil
	}
	if err != nil {
		return "", s, fmt.Errorf("while finding the lab's directory: %w", err)
	}
	if strings.ContainsAny(dir, `*?[\,`) {
		return "", s, fmt.Errorf("%s: the lab's directory becomes part of a device filter and must not contain any of *?[\\,", dir)
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", s, fmt.Errorf("%s exists already: is it a lab that runs? Destroy it first", dir)
	}
	for i := range o.Count {
		s.Hosts = append(s.Hosts, hostState{Name: fmt.Sprintf("h%d", i+1), IP: address(s.Subnet, 11+i), Share: o.Share})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", s, fmt.Errorf("while making the lab's directory: %w", err)
	}
	if err := writeState(dir, s); err != nil {
		return dir, s, err
	}
	return dir, s, makeBridge(s)
}

// update changes the lab's state, in memory and on disk.
func (l *Lab) update(change func(*state)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
	return writeState(l.Dir, l.state)
}
