package gate

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These tests use loop devices of their own, and need root.

const mib = 1 << 20

// place is a daemon with a new disk.
func place(t *testing.T) (*service.Local, *api.Device) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 100*mib)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	path := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", path).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	l := &service.Local{Data: t.TempDir(), Daemon: &api.Daemon{}}
	d := seen(t, path)
	l.Daemon.Spec.Devices = []api.DaemonDevice{{Name: "disk", ID: d.ID}}
	return l, d
}

// seen is a disk as it is now.
func seen(t *testing.T, path string) *api.Device {
	t.Helper()
	s := &inventory.Scanner{Only: func(d api.Device) bool { return d.Path == path }}
	devices, err := s.Rescan(t.Context())
	if err != nil || len(devices) != 1 {
		t.Fatalf("%+v, %v", devices, err)
	}
	return &devices[0]
}

func write(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(text), at)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func notes(t *testing.T, l *service.Local) int {
	t.Helper()
	all, err := os.ReadDir(l.Data)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

var errDied = errors.New("it died")

// begin dies while it writes, so that no signature tells what it was.
func begin(t *testing.T, l *service.Local, d *api.Device, at int64) {
	t.Helper()
	err := Make(t.Context(), l, []*api.Device{d}, func() error {
		write(t, d.Path, at, "half a header")
		return errDied
	})
	if !errors.Is(err, errDied) {
		t.Fatal(err)
	}
}

func refused(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r)
}

func TestMake(t *testing.T) {
	l, d := place(t)
	begin(t, l, d, mib)
	again := seen(t, d.Path)
	if again.Taken() == "" {
		t.Fatal("the half of a header is nothing")
	}
	if err := Free(l, again); err != nil {
		t.Errorf("who began may not go on: %v", err)
	}
	other := *l
	other.Data = t.TempDir()
	if !refused(Free(&other, again)) {
		t.Error("another daemon may go on")
	}
	done := false
	err := Make(t.Context(), l, []*api.Device{again}, func() error {
		done = true
		return nil
	})
	if err != nil || !done || notes(t, l) != 0 {
		t.Errorf("%v, done %v, notes %d", err, done, notes(t, l))
	}
	if !refused(Free(l, again)) {
		t.Error("what was made may be made once more")
	}
}

// Whatever came to a disk after it was scanned, or where nothing can have been written yet, is left
// alone, to the byte.
func TestMake_refuses(t *testing.T) {
	rows := func(t *testing.T, path string) { write(t, path, 50*mib, "row 4711") }
	label := func(t *testing.T, path string) { write(t, path, 0, "bluestore block device\n") }
	for name, c := range map[string]struct {
		begun bool
		spoil func(t *testing.T, path string)
		want  string
	}{
		"data since the scan":       {false, rows, "holds unknown data at byte 52428800"},
		"a file system since":       {false, mkfs, "has a file system: ext4"},
		"a label since":             {false, label, "BlueStore label"},
		"data where it was begun":   {true, rows, "holds unknown data"},
		"a file system, begun":      {true, mkfs, "has a file system: ext4"},
		"it is open, by whom ever":  {false, hold, "is in use"},
		"it is open, and was begun": {true, hold, "is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			l, d := place(t)
			if c.begun {
				begin(t, l, d, mib)
			}
			c.spoil(t, d.Path)
			before, err := os.ReadFile(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			err = Make(t.Context(), l, []*api.Device{d}, func() error {
				t.Error("it was made")
				return nil
			})
			if !refused(err) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "it was not touched") {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err := Undo(t.Context(), l); err != nil {
				t.Error(err)
			}
			if after, err := os.ReadFile(d.Path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the disk was written to (%v)", err)
			}
		})
	}
}

func mkfs(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func hold(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}

// One that was open when it was scanned is looked at when it passes: it may be free, or hold anything.
func TestMake_wasOpen(t *testing.T) {
	l, d := place(t)
	f, err := os.OpenFile(d.Path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	open := seen(t, d.Path)
	if open.Taken() != inventory.InUse {
		t.Errorf("%q", open.Taken())
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = f.Close() })
	if err := Make(t.Context(), l, []*api.Device{open}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	write(t, d.Path, 50*mib, "row 4711")
	if err := Make(t.Context(), l, []*api.Device{open}, func() error { return nil }); !refused(err) {
		t.Errorf("data since: %v", err)
	}
}

// What was begun and is not wanted any more leaves an empty disk.
func TestUndo(t *testing.T) {
	l, d := place(t)
	begin(t, l, d, 3*mib)
	l.Devices = map[string]api.Device{"disk": *seen(t, d.Path)}
	for range 2 {
		if err := Undo(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if d := seen(t, d.Path); d.Taken() != "" || notes(t, l) != 0 {
		t.Errorf("%q, notes %d", d.Taken(), notes(t, l))
	}
}

// A device that the Daemon does not name any more may be given to anybody: what is on it when it is
// named again is not known.
func TestForget(t *testing.T) {
	l, d := place(t)
	begin(t, l, d, mib)
	named := l.Daemon
	l.Daemon = &api.Daemon{}
	if err := Forget(l); err != nil {
		t.Fatal(err)
	}
	l.Daemon = named
	if !refused(Free(l, seen(t, d.Path))) || notes(t, l) != 0 {
		t.Errorf("it may go on; notes %d", notes(t, l))
	}
}
