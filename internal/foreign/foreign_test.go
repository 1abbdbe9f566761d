package foreign

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// fake is a /proc in a directory.
type fake struct {
	*testing.T
	dir string
}

func newFake(t *testing.T) *fake {
	f := &fake{t, t.TempDir()}
	f.write("stat", "cpu 1 2\nbtime 1000\nprocesses 1\n")
	return f
}

func (f *fake) write(path, text string) {
	f.Helper()
	full := filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fake) link(path, target string) {
	f.Helper()
	full := filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink(target, full); err != nil {
		f.Fatal(err)
	}
}

// process adds a process with its own root directory, in which files lie.
func (f *fake) process(pid int, state string, ticks int, args ...string) {
	f.Helper()
	f.write(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (a) b) %s 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 0", pid, state, ticks))
	f.write(fmt.Sprintf("%d/cmdline", pid), strings.Join(args, "\x00")+"\x00")
}

func at(seconds int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(seconds, 0).UTC()) }

func TestFind(t *testing.T) {
	f := newFake(t)
	const fsid = "11111111-2222-3333-4444-555555555555"
	f.process(10, "S", 5000, "/usr/bin/ceph-mon", "-f", "--cluster", "ceph", "--id", "a", "--setuser", "ceph")
	f.link("10/fd/7", "/srv/mon/ceph-a/store.db/LOCK")
	f.write("10/root/etc/ceph/ceph.conf", "[global]\nfsid = "+fsid+"\n")
	f.process(11, "S", 6000, "ceph-osd", "-i", "3", "-c", "my.conf")
	f.link("11/fd/3", "socket:[1]")
	f.write("11/cwd/my.conf", "fsid=other\n")
	f.write("11/root/var/lib/ceph/osd/ceph-3/ceph_fsid", fsid+"\n")
	f.process(12, "S", 0, "radosgw", "--name=client.rgw.s")
	f.process(20, "S", 0, "ceph-osd", "--mkfs", "-i", "4")
	f.process(21, "Z", 0, "ceph-osd", "-i", "5")
	f.process(22, "S", 0, "sh", "-c", "ceph-osd -i 6")
	f.process(23, "S", 0, "ceph-osd", "--version")
	f.process(24, "S", 0, "ceph-mgr", "-i", "x")
	f.write("30/cmdline", "ceph-osd\x00-i\x007\x00") // it ended meanwhile
	f.write("self/cmdline", "x")
	finder := &Finder{Proc: f.dir}
	got, err := finder.Find(map[int]bool{24: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []api.ForeignDaemon{
		{Type: "ceph-mon", ID: "a", PID: 10, Started: at(1050), Cluster: fsid, Data: "/srv/mon/ceph-a", Container: true},
		{Type: "ceph-osd", ID: "3", PID: 11, Started: at(1060), Cluster: fsid, Data: "/var/lib/ceph/osd/ceph-3", Container: true},
		{Type: "radosgw", ID: "rgw.s", PID: 12, Started: at(1000), Data: "/var/lib/ceph/radosgw/ceph-rgw.s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What is known of a process is not read again; a new one of the same number is.
	f.write("10/cmdline", "ceph-mon\x00-i\x00b\x00")
	if got, _ := finder.Find(nil); got[1].ID != "a" {
		t.Errorf("it was looked at again: %+v", got)
	}
	f.process(10, "S", 7000, "ceph-mon", "-i", "b")
	if got, _ := finder.Find(nil); got[1].ID != "b" || got[1].Started != at(1070) {
		t.Errorf("it was not looked at again: %+v", got)
	}
	// One that has just been started opens its store a moment later.
	f.write("stat", fmt.Sprintf("btime %d\n", time.Now().Unix()))
	f.process(13, "S", 0, "ceph-mon", "-i", "c")
	if got, _ := finder.Find(nil); Pick(got, "ceph-mon", "c", "x").Data != "/var/lib/ceph/mon/ceph-c" {
		t.Errorf("%+v", got)
	}
	f.link("13/fd/7", "/srv/mon/store.db/LOCK")
	if got, _ := finder.Find(nil); Pick(got, "ceph-mon", "c", "x").Data != "/srv/mon" {
		t.Errorf("where its store is was guessed: %+v", got)
	}
}

// TestRecent looks once for all who ask at one time.
func TestRecent(t *testing.T) {
	f := newFake(t)
	finder := &Finder{Proc: f.dir}
	f.process(10, "S", 5000, "ceph-mon", "-i", "a")
	for _, x := range []struct {
		age  time.Duration
		ours map[int]bool
		want int
	}{{time.Hour, nil, 1}, {time.Hour, map[int]bool{10: true}, 0}, {time.Hour, nil, 1}, {0, nil, 2}} {
		if got, err := finder.Recent(x.age, x.ours); err != nil || len(got) != x.want {
			t.Errorf("%+v: %v, %v", x, got, err)
		}
		f.process(11, "S", 5000, "ceph-mon", "-i", "b")
	}
}

func TestPick(t *testing.T) {
	all := []api.ForeignDaemon{
		{Type: "ceph-mon", ID: "a", PID: 3}, {Type: "ceph-mon", ID: "a", Cluster: "x", PID: 1}, {Type: "ceph-mon", ID: "a", PID: 4}, {Type: "ceph-mon", ID: "b", PID: 2},
	}
	for _, c := range []struct {
		id, fsid string
		pid      int32
	}{{"a", "x", 1}, {"a", "y", 3}, {"b", "y", 2}, {"c", "x", 0}} {
		got := Pick(all, "ceph-mon", c.id, c.fsid)
		if got == nil && c.pid != 0 || got != nil && got.PID != c.pid {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestUnitOf(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/system-ceph\\x2dosd.slice/ceph-osd@3.service\n": "ceph-osd@3.service",
		"12:cpu:/\n1:name=systemd:/system.slice/ceph-mon@a.service\n":     "ceph-mon@a.service",
		"0::/user.slice/user-0.slice/session-3.scope\n":                   "",
		"0::/\n": "",
	} {
		if got := unitOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEnd ends real processes that look like OSDs: one ends, another one does not, and is left alone.
func TestEnd(t *testing.T) {
	stubborn := startOSD(t, "987654", "trap '' TERM; ")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := End(ctx, find(t, "987654")); err == nil {
		t.Error("a process that goes on is said to have ended")
	}
	if err := End(t.Context(), &api.ForeignDaemon{Type: "ceph-osd", ID: "987654", PID: int32(os.Getpid())}); err != nil {
		t.Errorf("the process is another one by now: %v", err)
	}
	if find(t, "987654") == nil {
		t.Error("it was killed")
	}
	stubborn.Close()
	startOSD(t, "987655", "")
	if err := End(t.Context(), find(t, "987655")); err != nil || find(t, "987655") != nil {
		t.Errorf("%v, it runs on", err)
	}
}

func find(t *testing.T, id string) *api.ForeignDaemon {
	t.Helper()
	all, err := new(Finder).Find(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Pick(all, "ceph-osd", id, "")
}

// startOSD starts a shell that looks like an OSD, and ends when its input is closed.
func startOSD(t *testing.T, id, script string) io.Closer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ceph-osd")
	if err := os.Symlink("/bin/sh", program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", script+"echo; read x", "-i", id)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil { // the trap is set
		t.Fatal(err)
	}
	return in
}
