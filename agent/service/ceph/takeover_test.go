package ceph

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/foreign"
)

// foreignMon is a mon's Daemon for a process that somebody else has started, with the store of that.
func foreignMon(t *testing.T) (l *service.Local, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "ceph-before")
	if err := os.MkdirAll(filepath.Join(store, "store.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store, "store.db", "CURRENT"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-mon", ID: fmt.Sprintf("test-%d", os.Getpid())}}
	return &service.Local{Daemon: d, Data: t.TempDir(), Parameters: map[string]string{api.ParameterForeign: "x", paramStore: store}}, store
}

// startMon starts a shell that looks like the mon.
func startMon(t *testing.T, l *service.Local) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ceph-mon")
	if err := os.Symlink("/bin/sh", program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", "echo; read x", "-i", l.Daemon.Spec.ID, "-c", "/no.conf", "--mon-data", l.Parameters[paramStore])
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	for running(t, l) == nil { // it is a copy of this test until it is the shell
		if cmd.Process == nil {
			t.Fatal("it did not start")
		}
	}
}

func running(t *testing.T, l *service.Local) *api.ForeignDaemon {
	t.Helper()
	all, err := new(foreign.Finder).Find(nil)
	if err != nil {
		t.Fatal(err)
	}
	return foreign.Pick(all, "ceph-mon", l.Daemon.Spec.ID, "x")
}

func TestTakeOver(t *testing.T) {
	l, store := foreignMon(t)
	startMon(t, l)
	l.Parameters[paramStore] = "/nowhere"
	if err := takeOverMon(t.Context(), l); err == nil || !strings.Contains(err.Error(), "left alone") || running(t, l) == nil {
		t.Fatalf("without its store: %v", err)
	}
	l.Parameters[paramStore] = store
	if err := takeOverMon(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if p := running(t, l); p != nil {
		t.Errorf("it runs on: %+v", p)
	}
	if to, err := os.Readlink(filepath.Join(l.Data, directoryName)); err != nil || to != store || !(Mon{}).Kept(l) {
		t.Errorf("the store is %s: %v", to, err)
	}
	if before, err := os.ReadFile(filepath.Join(l.Data, fileBefore)); err != nil || !strings.Contains(string(before), `"--mon-data","`+store) {
		t.Errorf("of before it says %q: %v", before, err)
	}
	startMon(t, l)
	if err := takeOverMon(t.Context(), l); err != nil || running(t, l) == nil {
		t.Errorf("it was taken over before, and what somebody starts after that is ended: %v", err)
	}
}

// TestTakeOver_again is cut off after the process has ended.
func TestTakeOver_again(t *testing.T) {
	l, store := foreignMon(t)
	if err := linkDevice(filepath.Join(l.Data, directoryName), store); err != nil {
		t.Fatal(err)
	}
	if err := takeOverMon(t.Context(), l); err != nil || !(Mon{}).Kept(l) {
		t.Error(err)
	}
}

// TestTakeOver_afterwards has what is done with a store work on one that is a link: it is copied, and lost with the cluster's data alone.
func TestTakeOver_afterwards(t *testing.T) {
	l, store := foreignMon(t)
	if err := os.WriteFile(filepath.Join(store, "store.db", "1.sst"), []byte("table"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := takeOverMon(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	place, copied := filepath.Join(l.Data, directoryName), filepath.Join(l.Data, "copy")
	if err := cloneStore(place, copied); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(copied, "store.db", "1.sst")); err != nil || string(got) != "table" {
		t.Errorf("%q, %v", got, err)
	}
	destroy := func(policy api.DeletionPolicy, its string, kept bool) {
		t.Helper()
		l.Daemon.Spec.OnRemoval, l.Parameters[paramStore] = policy, its
		if err := (Mon{}).DestroyLocalService(t.Context(), l); err != nil || (Mon{}).Kept(l) != kept {
			t.Errorf("%s of %s: %v, kept: %v", policy, its, err, !kept)
		}
	}
	destroy(api.DeletionRetain, store, true)
	destroy(api.DeletionWipe, "/elsewhere", true) // not the daemon's own
	l.Parameters[paramStore] = store
	startMon(t, l)
	if err := (Mon{}).DestroyLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "nothing is wiped") || !(Mon{}).Kept(l) {
		t.Errorf("the store of a mon that somebody has started is wiped: %v", err)
	}
	if err := endForeign(t.Context(), l, noSystemd); err != nil {
		t.Fatal(err)
	}
	destroy(api.DeletionWipe, store, false)
}

// TestMon_mountedStore has the store on a filesystem of its own, which is mounted on its directory: it is emptied, and the directory stays.
func TestMon_mountedStore(t *testing.T) {
	l, store := foreignMon(t)
	if err := takeOverMon(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", store, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(store, 0); err != nil {
			t.Error(err)
		}
	})
	inside := filepath.Join(store, "store.db", "mounted")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", inside, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	l.Daemon.Spec.OnRemoval = api.DeletionWipe
	if err := (Mon{}).DestroyLocalService(t.Context(), l); err == nil {
		t.Error("what is mounted inside stays, and nobody says so")
	}
	if err := unix.Unmount(inside, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (Mon{}).DestroyLocalService(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTakeOver_ownStore(t *testing.T) {
	l, _ := foreignMon(t)
	if err := os.Mkdir(filepath.Join(l.Data, directoryName), 0o700); err != nil {
		t.Fatal(err)
	}
	startMon(t, l)
	if err := takeOverMon(t.Context(), l); err == nil || running(t, l) == nil {
		t.Errorf("a store of Holdfast's own is given up: %v", err)
	}
}

// TestEndForeign_unit has the process end with its unit.
func TestEndForeign_unit(t *testing.T) {
	l, _ := foreignMon(t)
	startMon(t, l)
	p := running(t, l)
	p.Unit = ownUnit(l)
	s, said := fakeSystemd(t, fmt.Sprintf("kill %d", p.PID))
	if err := errors.Join(endItsUnits(t, l, s, p), end(t.Context(), l, p)); err != nil || running(t, l) != nil {
		t.Errorf("it runs on: %v", err)
	}
	if got := said(); got != "stop "+p.Unit+"\n" {
		t.Errorf("systemctl was told %q", got)
	}
}

// TestEndForeign_disableFails leaves the process alone where it cannot be kept from starting again.
func TestEndForeign_disableFails(t *testing.T) {
	l, _ := foreignMon(t)
	startMon(t, l)
	s := systemd{units: t.TempDir(), running: "/nowhere"}
	enable(t, s.units, "ceph-mon.target.wants/"+ownUnit(l))
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	if err := endForeign(t.Context(), l, s); err == nil || running(t, l) == nil {
		t.Errorf("it was ended: %v", err)
	}
	t.Setenv("PATH", path)
	its, _ := fakeSystemd(t, "exit 1")
	its.running = s.running
	enable(t, its.units, "ceph-mon.target.wants/"+ownUnit(l))
	if err := endForeign(t.Context(), l, its); err != nil || running(t, l) != nil {
		t.Errorf("when it can: %v", err)
	}
}

func TestEndForeign_container(t *testing.T) {
	l, _ := foreignMon(t)
	startMon(t, l)
	p := running(t, l)
	p.Container = true
	if err := endable(l, p); err == nil {
		t.Error("a container is ended")
	}
}

// TestTakeOver_movedStore has somebody move the store after the adoption, and leave the old one behind.
func TestTakeOver_movedStore(t *testing.T) {
	l, old := foreignMon(t)
	l.Parameters[paramStore] = t.TempDir()
	startMon(t, l)
	l.Parameters[paramStore] = old
	if err := takeOverMon(t.Context(), l); err == nil || !strings.Contains(err.Error(), "run 'holdfast ceph adopt' again") || running(t, l) == nil {
		t.Errorf("it goes on with the old store: %v", err)
	}
}

// TestEndForeign_otherUnit leaves a unit alone that is not the daemon's own, and all that it may run.
func TestEndForeign_otherUnit(t *testing.T) {
	l, _ := foreignMon(t)
	startMon(t, l)
	p := running(t, l)
	p.Unit = "cron.service"
	if err := endable(l, p); err == nil || !strings.Contains(err.Error(), "the unit cron.service") {
		t.Errorf("it is ended: %v", err)
	}
}

// TestEndForeign_twice tells of a second one on the same store, instead of starting a third.
func TestEndForeign_twice(t *testing.T) {
	l, _ := foreignMon(t)
	startMon(t, l)
	first := running(t, l).PID
	startMon(t, l)
	for both := 0; both < 2; { // the second one is a copy of this test until it is the shell
		all, err := new(foreign.Finder).Find(nil)
		if err != nil {
			t.Fatal(err)
		}
		both = len(slices.DeleteFunc(all, func(d api.ForeignDaemon) bool { return d.ID != l.Daemon.Spec.ID }))
	}
	if err := endForeign(t.Context(), l, noSystemd); err == nil || !strings.Contains(err.Error(), "another program starts it again") {
		t.Errorf("after process %d: %v", first, err)
	}
}

// TestMon_unmounted has the store on a filesystem that is not mounted yet: the link to it stays.
func TestMon_unmounted(t *testing.T) {
	l, store := foreignMon(t)
	if err := takeOverMon(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(store, store+".away"); err != nil {
		t.Fatal(err)
	}
	l.Parameters[paramFounded], l.Parameters[paramMonmap] = "true", l.Daemon.Spec.ID+"=[v2:10.0.0.1:3300,v1:10.0.0.1:6789]"
	if err := (Mon{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "is lost") {
		t.Fatalf("without its store: %v", err)
	}
	if err := os.Rename(store+".away", store); err != nil {
		t.Fatal(err)
	}
	if err := (Mon{}).ConfigureLocalService(t.Context(), l); err != nil || !(Mon{}).Kept(l) {
		t.Errorf("when it is back: %v", err)
	}
}

// TestTakeOver_lost has nothing of a mon left on its host, which was installed anew: it is made again when the others are a quorum, and not before.
func TestTakeOver_lost(t *testing.T) {
	l, store := foreignMon(t)
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	if err := takeOverMon(t.Context(), l); err == nil {
		t.Error("nothing was there to take over, and it goes on")
	}
	l.Parameters[paramRejoin] = "true"
	if err := takeOverMon(t.Context(), l); err != nil {
		t.Errorf("it can never be made again: %v", err)
	}
}
