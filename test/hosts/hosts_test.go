package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	MaybeInit()
	goleak.VerifyTestMain(m)
}

// reach reports whether a packet gets from one host to an address and back: nobody listens there, and a refusal is an
// answer.
func reach(t *testing.T, from *Host, ip string, timeout time.Duration) bool {
	t.Helper()
	err := from.enter(func() error {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, "9"), timeout)
		if err == nil {
			conn.Close()
		}
		return err
	})
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.As(err, &slow) && slow.Timeout():
		return false
	}
	t.Fatalf("unexpected answer from %s: %v", ip, err)
	return false
}

func TestNew_hostsHaveTheirOwnNamesAddressesAndFiles(t *testing.T) {
	began := time.Now()
	lab := New(t, Options{Count: 3, Disks: 1})
	t.Logf("three hosts in %s", time.Since(began))
	ctx := t.Context()
	for i, h := range lab.Hosts() {
		if got := h.Run(t, ctx, "hostname"); got != h.Name {
			t.Errorf("host name %q, want %q", got, h.Name)
		}
		h.Run(t, ctx, "sh", "-c", "mkdir /var/lib/holdfast && for d in /var/lib/holdfast /etc/ceph /run /tmp /var/log /dev/shm; do hostname > $d/me; done")
		if got := h.Run(t, ctx, "sh", "-c", "cat /proc/1/cmdline"); !strings.Contains(got, lab.state.Prefix+"-"+h.Name) {
			t.Errorf("the first process of host %s is %q", h.Name, got)
		}
		if got := h.Run(t, ctx, "cat", "/proc/sys/net/ipv4/ip_local_reserved_ports"); got != "40000,49152-60999" {
			t.Errorf("host %s reserves the ports %q", h.Name, got)
		}
		if i > 0 {
			want := strings.Repeat(h.Name+"\n", 6)
			if got := h.Run(t, ctx, "sh", "-c", "cat /var/lib/holdfast/me /etc/ceph/me /run/me /tmp/me /var/log/me /dev/shm/me"); got+"\n" != want {
				t.Errorf("host %s finds the files of others: %q", h.Name, got)
			}
		}
		for _, other := range lab.Hosts() {
			if !reach(t, h, other.IP, time.Second) {
				t.Errorf("host %s does not reach %s", h.Name, other.IP)
			}
		}
		if !reach(t, h, lab.Gateway, time.Second) {
			t.Errorf("host %s does not reach the machine", h.Name)
		}
	}
	if _, err := os.Stat("/var/lib/holdfast/me"); err == nil {
		t.Error("a host wrote to the machine's /var")
	}
	if got, err := os.ReadFile(lab.Host(2).Path("/var/lib/holdfast/me")); err != nil || string(got) != "h2\n" {
		t.Errorf("the machine sees %q in the host's file: %v", got, err)
	}
}

func TestNew_sharedDirectoriesAreSeenBelowTheHostsOwn(t *testing.T) {
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(spec, []byte("spec"), 0o644); err != nil {
		t.Fatal(err)
	}
	lab, err := os.MkdirTemp("/var/tmp", "holdfast-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(lab) }()
	h := New(t, Options{Dir: filepath.Join(lab, "lab"), Share: []string{filepath.Dir(spec)}}).Host(1)
	if got := h.Run(t, t.Context(), "cat", spec); got != "spec" {
		t.Errorf("the host reads %q", got)
	}
	h.Run(t, t.Context(), "test", "-d", filepath.Join(h.Dir(), "logs"))
	if err := New(t, Options{}).Host(1).Command(t.Context(), "cat", spec).Run(); err == nil {
		t.Error("a host sees what is not shared")
	}
}

func TestCommand_isAChildOfThisProgram(t *testing.T) {
	h := New(t, Options{}).Host(1)
	err := h.Command(t.Context(), "sh", "-c", "echo sorry >&2; exit 7").Run()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit status 7 arrives as %v", err)
	}
	if _, err := h.Try(t.Context(), "sh", "-c", "echo sorry >&2; exit 7"); err == nil || !strings.Contains(err.Error(), "sorry") {
		t.Errorf("the error does not tell what the command wrote: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.Command(ctx, "sleep", "60").Run(); err == nil {
		t.Error("a command outlives its context")
	}

	p := h.Start(t, "sh", "-c", `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done`)
	await(t, "it to be up", func() bool { return logOf(t, p) == "up\n" })
	p.Stop(t, 5*time.Second)
	if exit := (*exec.ExitError)(nil); !errors.As(p.Err(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("SIGTERM did not reach the process: %v", p.Err())
	}
	if got := logOf(t, p); got != "up\nbye\n" {
		t.Errorf("log %q", got)
	}
}

func logOf(t *testing.T, p *Process) string {
	t.Helper()
	data, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestPowerOff_endsEverythingAndKeepsTheDisks(t *testing.T) {
	lab := New(t, Options{Count: 2, Disks: 1})
	h, ctx := lab.Host(1), t.Context()
	disk := h.Disk(0).Path()
	h.Run(t, ctx, "mkfs.ext4", "-q", disk)
	h.Run(t, ctx, "sh", "-c", "mkdir /var/disk && mount "+disk+" /var/disk && echo kept > /var/disk/file && echo gone > /tmp/file && echo log > /var/log/file")
	p := h.Start(t, "sleep", "600")
	h.Run(t, ctx, "sh", "-c", "setsid sleep 601 >/dev/null 2>&1 &") // a daemon, whose parent is the host's first process
	if left := processes(lab.state); len(left) < 4 {
		t.Fatalf("two hosts and two processes expected: %q", left)
	}

	h.PowerOff(t)
	select {
	case <-p.Done():
	case <-time.After(time.Second):
		t.Error("a process lives on without power")
	}
	for _, left := range processes(lab.state) {
		if strings.Contains(left, "sleep") {
			t.Errorf("lives on without power: %s", left)
		}
	}
	if _, err := h.Try(ctx, "true"); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Errorf("a command runs without power: %v", err)
	}
	if reach(t, lab.Host(2), h.IP, 200*time.Millisecond) {
		t.Error("a host without power answers")
	}

	h.PowerOn(t)
	if got := h.Run(t, ctx, "sh", "-c", "mount "+disk+" /var/disk && cat /var/disk/file /var/log/file"); got != "kept\nlog" {
		t.Errorf("after the power came back: %q", got)
	}
	if got := h.Run(t, ctx, "ls", "/tmp"); strings.Contains(got, "file") {
		t.Errorf("/tmp outlives a power-off: %q", got)
	}
	if !reach(t, lab.Host(2), h.IP, time.Second) {
		t.Error("a host does not answer after the power came back")
	}
}

func TestCut(t *testing.T) {
	lab := New(t, Options{Count: 2})
	a, b := lab.Host(1), lab.Host(2)
	b.Cut(t)
	if reach(t, a, b.IP, 200*time.Millisecond) || reach(t, b, a.IP, 200*time.Millisecond) {
		t.Error("packets pass a cut cable")
	}
	b.PowerOff(t)
	b.PowerOn(t)
	if reach(t, a, b.IP, 200*time.Millisecond) {
		t.Error("a power-off mends the cable")
	}
	b.Restore(t)
	await(t, "the cable to work again", func() bool { return reach(t, a, b.IP, 200*time.Millisecond) })
}

func TestSlow(t *testing.T) {
	lab := New(t, Options{Count: 2})
	a, b := lab.Host(1), lab.Host(2)
	reach(t, a, b.IP, time.Second) // ARP
	const delay = 100 * time.Millisecond
	err := b.Slow(delay, 0)
	if !kernelHasNetem(t) {
		if !errors.Is(err, ErrNoNetem) {
			t.Errorf("no netem, and Slow says %v", err)
		}
		b.Restore(t)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	timed := func() time.Duration {
		began := time.Now()
		if !reach(t, a, b.IP, 5*time.Second) {
			t.Error("a slow host does not answer")
		}
		return time.Since(began)
	}
	if took := timed(); took < 2*delay {
		t.Errorf("there and back in %s with a delay of %s", took, delay)
	}
	b.Restore(t)
	if took := timed(); took >= 2*delay {
		t.Errorf("still slow after Restore: %s", took)
	}
}

// kernelHasNetem asks the kernel by another way than Slow does.
func kernelHasNetem(t *testing.T) bool {
	t.Helper()
	lab := New(t, Options{})
	link, err := netlink.LinkByName(lab.Host(1).link())
	if err != nil {
		t.Fatal(err)
	}
	return netlink.QdiscAdd(netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT},
		netlink.NetemQdiscAttrs{Latency: 1000})) == nil
}

func TestDisk(t *testing.T) {
	h := New(t, Options{Disks: 1}).Host(1)
	d, ctx := h.Disk(0), t.Context()
	path, id := d.Path(), d.ID()
	h.Run(t, ctx, "sh", "-c", "echo content > "+path)
	d.Detach(t)
	if d.Path() != "" || attachedFile(path) != "" {
		t.Errorf("a detached disk is at %q (%q)", d.Path(), attachedFile(path))
	}
	d.Attach(t)
	if d.Path() == path || d.ID() != id {
		t.Errorf("it was %s at %s and came back as %s at %s", id, path, d.ID(), d.Path())
	}
	if got := h.Run(t, ctx, "head", "-c7", d.Path()); got != "content" {
		t.Errorf("it came back with %q", got)
	}
	d.Replace(t)
	d.Replace(t)
	if d.ID() == id {
		t.Error("another disk has the same identity")
	}
	if got := h.Run(t, ctx, "sh", "-c", "head -c7 "+d.Path()+" | tr '\\0' 0"); got != "0000000" {
		t.Errorf("a new disk holds %q", got)
	}
	if added := h.AddDisk(t, 1<<30); added != h.Disk(1) || added.Path() == d.Path() {
		t.Errorf("the second disk is at %s, the first at %s", added.Path(), d.Path())
	}
}

func TestDisk_inUseCannotBeDetached(t *testing.T) {
	h := New(t, Options{Disks: 1}).Host(1)
	d := h.Disk(0)
	f, err := os.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	err = Script(io.Discard, func(t T) { d.Detach(t) })
	if err == nil || !strings.Contains(err.Error(), "still in use") {
		t.Errorf("detaching an open disk: %v", err)
	}
	f.Close()
	await(t, "the kernel to let go", func() bool { return findLoop(d.file) == "" })
}

func TestDisk_pulledWhileInUse(t *testing.T) {
	h := New(t, Options{Disks: 1}).Host(1)
	d := h.Disk(0)
	id, path := d.ID(), d.Path()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Pull(t)
	if _, err := f.ReadAt(make([]byte, 512), 0); err == nil {
		t.Error("a pulled disk can be read")
	}
	if _, err := f.WriteAt(make([]byte, 512), 0); err == nil {
		t.Error("a pulled disk can be written to")
	}
	d.Replace(t)
	if d.ID() == id || d.Path() == path {
		t.Errorf("the new disk is %s at %s, as the old one was", d.ID(), d.Path())
	}
	f.Close()
	await(t, "the kernel to let go of the old disk", func() bool { return attachedFile(path) == "" })
}

// A lab that outlives its program is found and removed by another, and leftovers are named.
func TestDestroy_fromAnotherProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	var lab *Lab
	if err := Script(io.Discard, func(t T) {
		lab = New(t, Options{Count: 2, Disks: 1, Dir: dir, Keep: true})
		lab.Host(1).Start(t, "sleep", "600")
	}); err != nil {
		t.Fatal(err)
	}
	again := Open(t, dir)
	if got := again.Host(2).Run(t, t.Context(), "hostname"); got != "h2" {
		t.Errorf("host name %q", got)
	}
	if got, want := again.Host(2).Disk(0).Path(), lab.Host(2).Disk(0).Path(); got != want || got == "" {
		t.Errorf("disk at %q, want %q", got, want)
	}
	if err := Script(io.Discard, func(t T) { New(t, Options{Dir: dir}) }); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second lab in the same place: %v", err)
	}

	left, err := leftovers(dir, lab.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"directory " + dir, "first process of host h1", "first process of host h2", "loop device /dev/loop",
		"network interface " + lab.state.Prefix, "sleep 600",
	} {
		if !strings.Contains(strings.Join(left, "\n"), want) {
			t.Errorf("%q is missing in %q", want, left)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := Destroy(dir); err != nil {
			t.Fatal(err)
		}
	}
	lab.Leftovers(t)
}

func TestLeftovers_namesWhatWasPlanted(t *testing.T) {
	lab := New(t, Options{Dir: filepath.Join(t.TempDir(), "lab")})
	if err := Destroy(lab.Dir); err != nil {
		t.Fatal(err)
	}
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: lab.state.Prefix + "-9"}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = netlink.LinkDel(link) }()
	ctx, cancel := context.WithCancel(t.Context())
	process := exec.CommandContext(ctx, "sleep", "600")
	process.Env = []string{labVariable + "=" + lab.state.Prefix}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = process.Wait() }()
	if err := os.MkdirAll(lab.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", lab.Dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(lab.Dir) }()
	defer func() { _ = syscall.Unmount(lab.Dir, 0) }()
	disk := filepath.Join(lab.Dir, "disk")
	if err := os.WriteFile(disk, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	loop, err := attachLoop(disk, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := detachLoop(loop, disk); err != nil {
			t.Error(err)
		}
	}()

	roots, err := hierarchies()
	if err != nil || len(roots) == 0 {
		t.Fatalf("the hierarchies of control groups are %v (%v)", roots, err)
	}
	group := filepath.Join(roots[0].Mountpoint, lab.state.Prefix)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(group) }()

	err = Script(io.Discard, func(t T) { lab.Leftovers(t) })
	want := strings.Join([]string{
		"hosts: left behind: control group " + group,
		"hosts: left behind: directory " + lab.Dir,
		"hosts: left behind: loop device " + loop + " on " + disk,
		"hosts: left behind: mount at " + lab.Dir,
		"hosts: left behind: network interface " + lab.state.Prefix + "-9",
		fmt.Sprintf("hosts: left behind: process %d: sleep 600", process.Process.Pid),
	}, "\n")
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNew_sweepsLabsThatLostTheirProgram(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var lost *Lab
	options := Options{Disks: 1, Keep: true, Machine: Machine{Cgroup: true}}
	if err := Script(io.Discard, func(t T) { lost = New(t, options) }); err != nil {
		t.Fatal(err)
	}
	// As if the program that made it had been killed.
	if err := lost.update(func(s *state) { s.Keep, s.Owner.Start = false, 1 }); err != nil {
		t.Fatal(err)
	}
	New(t, Options{})
	lost.Leftovers(t)
}

func TestDiagnose_printsTheEndsOfLogs(t *testing.T) {
	var out strings.Builder
	err := Script(&out, func(st T) {
		h := New(st, Options{}).Host(1)
		h.Run(st, t.Context(), "sh", "-c", "mkdir -p /var/log/ceph && echo the mon said this > /var/log/ceph/mon.log")
		p := h.Start(st, "sh", "-c", "seq 100000; echo the process said that")
		<-p.Done()
		st.Fatalf("broken")
	})
	if err == nil || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"the mon said this", "the process said that", "host h1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if len(out.String()) > 2*tailBytes {
		t.Errorf("%d bytes of logs", out.Len())
	}
}
