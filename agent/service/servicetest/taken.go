package servicetest

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// theirs is what somebody else may have on a disk, and what is said of it.
var theirs = []struct {
	name, want string
	put        func(t *testing.T, path string)
}{
	{"data without a signature", "holds unknown data", putRows},
	{"a file system", "has a file system: ext4", putFilesystem},
}

// The disk is written to beyond what a table or a header at its beginning would take.
const rowsAt = 64 << 20

func putRows(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("row 4711\n"), 1<<17), rowsAt)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func putFilesystem(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// testTaken puts something on each of a new daemon's disks. The daemon is refused, with the reason,
// and no disk is written to. Killed or removed then, it leaves them alone as well.
func testTaken(t *testing.T, s *Subject) {
	if l := s.New(t); len(l.Daemon.Spec.Devices) == 0 {
		return // it has none
	}
	for _, their := range theirs {
		for n := range s.disks(t, s.New(t)) {
			t.Run(their.name, func(t *testing.T) {
				l := s.New(t)
				path := s.disks(t, l)[n]
				their.put(t, path)
				s.refusesTaken(t, l, path, their.want)
			})
		}
	}
}

// disks are the paths of the disks that a daemon is to be on, or on parts of.
func (s *Subject) disks(t *testing.T, l *service.Local) []string {
	t.Helper()
	s.look(t, l)
	all := map[string]bool{}
	for _, d := range slices.Concat(l.Inventory, slices.Collect(maps.Values(l.Devices))) {
		wanted := func(x api.DaemonDevice) bool { return x.Of == d.ID || x.Of == "" && x.ID == d.ID }
		if slices.ContainsFunc(l.Daemon.Spec.Devices, wanted) {
			all[d.Path] = true
		}
	}
	if len(all) == 0 {
		t.Fatal("a daemon with devices has no disks: see Look")
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *Subject) refusesTaken(t *testing.T, l *service.Local, path, want string) {
	t.Helper()
	before := written(t, path)
	for range 2 {
		_, err := s.live(t, l, &life{}, func() error { return s.bring(t.Context(), t, l) })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "it was not touched") {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := s.live(t, l, &life{}, func() error { return s.destroy(t.Context(), t, l) }); err != nil {
		t.Errorf("the removal: %v", err)
	}
	if after := written(t, path); after != before {
		t.Errorf("%s was written to: %s, and before %s", path, after, before)
	}
}

// written is how many sectors the kernel has written to a disk and discarded on it by now
// (Documentation/block/stat.rst).
func written(t *testing.T, path string) string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(filepath.Join("/sys/class/block", filepath.Base(path), "stat"))
	fields := strings.Fields(string(stat))
	if err != nil || len(fields) < 15 {
		t.Fatalf("%q, %v", stat, err)
	}
	return fields[6] + " " + fields[13]
}
