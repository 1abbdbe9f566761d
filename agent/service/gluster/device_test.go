package gluster

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// smallest is the smallest disk that mkfs.xfs takes.
const smallest = 300 << 20

// loopDevice makes a sparse disk.
func loopDevice(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "holdfast-agent-test.img")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(smallest), f.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	path := strings.TrimSpace(string(out))
	t.Cleanup(func() { run(t, "losetup", "-d", path) })
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v: %s", name, args, err, out)
	}
}

// scan looks at one device anew.
func scan(t *testing.T, path string) api.Device {
	t.Helper()
	s := &inventory.Scanner{Only: func(d api.Device) bool { return d.Path == path }}
	devices, err := s.Rescan(t.Context())
	if err != nil || len(devices) != 1 {
		t.Fatalf("scan of %s: %+v, %v", path, devices, err)
	}
	return devices[0]
}

func newLocal(t *testing.T, policy api.DeletionPolicy) *service.Local {
	t.Helper()
	l := servicetest.Dirs(t)
	l.Daemon.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "gluster-glusterd-n1"}
	l.Daemon.Spec = api.DaemonSpec{Type: glusterd.Type, ID: "n1", OnRemoval: policy}
	l.Parameters = map[string]string{glusterd.ParamPool: "pool-1", glusterd.ParamAddress: "127.0.0.1"}
	t.Cleanup(func() {
		for _, line := range tableOf(t, l).lines {
			if busy(line.dir) {
				run(t, "umount", line.dir)
			}
		}
	})
	return l
}

func tableOf(t *testing.T, l *service.Local) *fstab {
	t.Helper()
	table, err := readFstab(filepath.Join(l.Data, glusterd.FileFstab))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// with gives the daemon a device, as it is now.
func with(t *testing.T, l *service.Local, path string) (mount string) {
	t.Helper()
	dev := scan(t, path)
	name := glusterd.StoreName(dev.ID)
	if _, ok := l.Devices[name]; !ok {
		l.Daemon.Spec.Devices = append(l.Daemon.Spec.Devices, api.DaemonDevice{Name: name, ID: dev.ID})
	}
	l.Devices[name] = dev
	return mountPoint(l, name)
}

func configure(t *testing.T, l *service.Local) {
	t.Helper()
	if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func TestConfigureDevices_keepsData(t *testing.T) {
	path := loopDevice(t)
	l := newLocal(t, api.DeletionRetain)
	mount := with(t, l, path)
	configure(t, l)
	file := filepath.Join(brickRoot(mount), "data")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, again := range []struct {
		name string
		do   func()
	}{
		{"while it is mounted", func() {}},
		{"after a boot", func() { run(t, "umount", mount) }},
		{"after the host's memory of it was lost", func() {
			run(t, "umount", mount)
			if err := os.Remove(filepath.Join(l.Data, glusterd.FileFstab)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		again.do()
		with(t, l, path)
		configure(t, l)
		if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
			t.Errorf("%s: %q, %v", again.name, text, err)
		}
	}
	// The command of the Daemon mounts it by itself.
	run(t, "umount", mount)
	run(t, "mount", "-a", "-T", filepath.Join(l.Data, glusterd.FileFstab))
	if _, err := os.Stat(file); err != nil {
		t.Errorf("mounted by fstab: %v", err)
	}
}

func TestConfigureDevices_touchesNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name string
		make []string
		want string
	}{
		{"another file system", []string{"mkfs.ext4", "-q"}, "is not empty"},
		{"XFS of somebody else", []string{"mkfs.xfs", "-q"}, "is not empty"},
		{"XFS of another pool", []string{"mkfs.xfs", "-q", "-L", label, "-m", "uuid=" + uuidOf("pool-2", "x")}, "is not empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := loopDevice(t)
			run(t, tt.make[0], append(tt.make[1:], path)...)
			l := newLocal(t, api.DeletionWipe)
			good := loopDevice(t)
			with(t, l, path)
			mount := with(t, l, good)
			before := head(t, path)
			err := (Glusterd{}).ConfigureDevices(t.Context(), l)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if !busy(mount) {
				t.Error("the good device was not mounted")
			}
			if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil {
				t.Error(err)
			}
			if head(t, path) != before {
				t.Error("the device was written to")
			}
		})
	}
}

func head(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	if _, err := f.Read(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A disk that comes back empty is a mistake or a loss, and no new disk.
func TestConfigureDevices_emptyThatHeldBricks(t *testing.T) {
	path := loopDevice(t)
	l := newLocal(t, api.DeletionRetain)
	mount := with(t, l, path)
	configure(t, l)
	run(t, "umount", mount)
	run(t, "wipefs", "-qa", path)
	with(t, l, path)
	if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err == nil || !strings.Contains(err.Error(), "bricks were made on it before") {
		t.Errorf("error %v", err)
	}
	if sb, err := readSuperblock(path); sb != nil || err != nil {
		t.Errorf("it has a file system: %+v, %v", sb, err)
	}
}

func TestConfigureDevices_mkfsCutOff(t *testing.T) {
	path := loopDevice(t)
	l := newLocal(t, api.DeletionRetain)
	mount := with(t, l, path)
	configure(t, l)
	run(t, "umount", mount)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{1}, 126); err != nil { // as mkfs.xfs leaves it when it is killed
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	with(t, l, path)
	configure(t, l)
	if !busy(mount) {
		t.Error("it is not mounted")
	}
}

// leaveCases are what becomes of a file system when it is given up: its data is kept unless the policy says otherwise, and one without
// any is wiped.
var leaveCases = []struct {
	policy        api.DeletionPolicy
	brick, wantFS bool
}{{api.DeletionRetain, true, true}, {api.DeletionRetain, false, false}, {api.DeletionWipe, true, false}}

func makeBrick(t *testing.T, mount string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(brickRoot(mount), "v"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A device that the daemon has no more is unmounted; one in use stays, and is said.
func TestConfigureDevices_givesUp(t *testing.T) {
	for _, test := range leaveCases {
		path := loopDevice(t)
		l := newLocal(t, test.policy)
		mount := with(t, l, path)
		configure(t, l)
		if test.brick {
			makeBrick(t, mount)
		}
		used, err := os.Open(brickRoot(mount))
		if err != nil {
			t.Fatal(err)
		}
		l.Daemon.Spec.Devices, l.Devices = nil, nil
		if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err == nil || !strings.Contains(err.Error(), "still in use") || !busy(mount) {
			t.Errorf("%+v: error %v", test, err)
		}
		if notes(t, l) > 0 {
			t.Errorf("%+v: it is in use, and noted to be wiped", test)
		}
		used.Close()
		configure(t, l)
		sb, err := readSuperblock(path)
		if busy(mount) || err != nil || (sb != nil) != test.wantFS || len(tableOf(t, l).lines) > 0 {
			t.Errorf("%+v: mounted %v, file system %+v, %v", test, busy(mount), sb, err)
		}
	}
}

// giveUpLater has a device given up by an agent that dies after it has unmounted it, and before it wipes it.
func giveUpLater(t *testing.T, policy api.DeletionPolicy, brick bool) (l *service.Local, path, mount string) {
	t.Helper()
	path = loopDevice(t)
	l = newLocal(t, policy)
	mount = with(t, l, path)
	configure(t, l)
	if brick {
		makeBrick(t, mount)
	}
	l.Daemon.Spec.Devices, l.Devices = nil, map[string]api.Device{}
	giveUpCut(t, l, 0)
	if busy(mount) {
		t.Fatal("it is still mounted")
	}
	return l, path, mount
}

// giveUpCut cuts the agent off when it has written so often to a device.
func giveUpCut(t *testing.T, l *service.Local, after int) {
	t.Helper()
	restore := atomicfile.Cut("/dev", after)
	err := (Glusterd{}).ConfigureDevices(t.Context(), l)
	if !restore() || !errors.Is(err, atomicfile.ErrCut) {
		t.Fatalf("it was not cut off after %d: %v", after, err)
	}
}

// What was noted is done only if it is still to be done.
func TestGiveUp_resumed(t *testing.T) {
	for name, test := range map[string]struct {
		policy api.DeletionPolicy
		brick  bool
		since  func(t *testing.T, l *service.Local, path, mount string)
		wantFS bool
	}{
		"nothing changed":          {policy: api.DeletionRetain},
		"it is to stay now":        {policy: api.DeletionWipe, brick: true, since: retain, wantFS: true},
		"it was written to":        {policy: api.DeletionRetain, since: write, wantFS: true},
		"it has another name":      {policy: api.DeletionRetain, since: rename},
		"another name, and wiping": {policy: api.DeletionWipe, brick: true, since: rename},
	} {
		t.Run(name, func(t *testing.T) {
			l, path, mount := giveUpLater(t, test.policy, test.brick)
			if test.since != nil {
				test.since(t, l, path, mount)
			}
			configure(t, l)
			sb, err := readSuperblock(path)
			if busy(mount) || err != nil || (sb != nil) != test.wantFS || len(tableOf(t, l).lines) > 0 || notes(t, l) > 0 {
				t.Errorf("mounted %v, file system %+v, %v, %d notes", busy(mount), sb, err, notes(t, l))
			}
		})
	}
}

func retain(_ *testing.T, l *service.Local, _, _ string) {
	l.Daemon.Spec.OnRemoval = api.DeletionRetain
}

// write does what the daemon's own command does after a boot, and then glusterd.
func write(t *testing.T, _ *service.Local, path, mount string) {
	t.Helper()
	run(t, "mount", path, mount)
	makeBrick(t, mount)
	run(t, "umount", mount)
}

func rename(t *testing.T, l *service.Local, path, _ string) {
	t.Helper()
	sb, err := readSuperblock(path)
	if err != nil || sb == nil {
		t.Fatalf("%+v, %v", sb, err)
	}
	if err := noteWipe(wipeNote(l, sb.uuid), loopDevice(t), true); err != nil {
		t.Fatal(err)
	}
}

func notes(t *testing.T, l *service.Local) int {
	t.Helper()
	found, err := filepath.Glob(wipeNote(l, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// So can one whose wipe was not cut off, and what was noted of it was.
func TestWipe_doneAndDeclaredAgain(t *testing.T) {
	for after := range 3 {
		path := loopDevice(t)
		l := newLocal(t, api.DeletionWipe)
		mount := with(t, l, path)
		configure(t, l)
		l.Daemon.Spec.Devices, l.Devices = nil, map[string]api.Device{}
		restore := atomicfile.Cut(l.Data, 1+after) // the note; the mount point, the table, the note
		err := (Glusterd{}).ConfigureDevices(t.Context(), l)
		if sb, serr := readSuperblock(path); !restore() || err == nil || sb != nil || serr != nil {
			t.Fatalf("cut off after %d: %v, %+v, %v", after, err, sb, serr)
		}
		with(t, l, path)
		if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err != nil || !busy(mount) || notes(t, l) > 0 {
			t.Errorf("cut off after %d: mounted %v, %d notes, %v", after, busy(mount), notes(t, l), err)
		}
	}
}

// A disk whose wipe was cut off anywhere can be declared again.
func TestWipe_cutOffAndDeclaredAgain(t *testing.T) {
	for after := range 3 {
		path := loopDevice(t)
		l := newLocal(t, api.DeletionWipe)
		mount := with(t, l, path)
		configure(t, l)
		l.Daemon.Spec.Devices, l.Devices = nil, map[string]api.Device{}
		giveUpCut(t, l, after)
		with(t, l, path)
		if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err != nil || !busy(mount) || notes(t, l) > 0 {
			t.Errorf("cut off after %d parts: mounted %v, %d notes, %v", after, busy(mount), notes(t, l), err)
		}
	}
}

func TestDestroy(t *testing.T) {
	for _, test := range leaveCases {
		path := loopDevice(t)
		l := newLocal(t, test.policy)
		mount := with(t, l, path)
		configure(t, l)
		if test.brick {
			makeBrick(t, mount)
			if err := os.WriteFile(filepath.Join(brickRoot(mount), "v", "rows"), bytes.Repeat([]byte("row 4711\n"), 20<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		sb, err := readSuperblock(path)
		if busy(mount) || err != nil || (sb != nil) != test.wantFS {
			t.Errorf("%+v: mounted %v, file system %+v, %v", test, busy(mount), sb, err)
		}
		if test.wantFS {
			continue
		}
		if dev := scan(t, path); dev.Availability != api.DeviceAvailable {
			t.Errorf("the wiped device is %s: %v", dev.Availability, dev.Reasons)
		}
	}
}

// TestConfigureDevices_grows: a device that somebody made larger is noticed, and its file system
// grown while it serves.
func TestConfigureDevices_grows(t *testing.T) {
	path := loopDevice(t)
	l := newLocal(t, api.DeletionRetain)
	mount := with(t, l, path)
	configure(t, l)
	brick(t, filepath.Join(brickRoot(mount), "v.1"))
	was := stores(l)[0]
	out, err := exec.Command("losetup", "--noheadings", "-O", "BACK-FILE", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(strings.TrimSpace(string(out)), 2*smallest); err != nil {
		t.Fatal(err)
	}
	if run(t, "losetup", "-c", path); (Glusterd{}).DevicesKept(l) {
		t.Error("nobody notices that the device is larger")
	}
	with(t, l, path)
	configure(t, l)
	is := stores(l)[0]
	if !(Glusterd{}).DevicesKept(l) || is.Size < was.Size+smallest/2 || len(is.Bricks) != 1 || is.Problem != "" {
		t.Errorf("it was %+v and is %+v", was, is)
	}
}

func TestUUIDOf(t *testing.T) {
	seen := map[string]bool{}
	for _, pair := range [][2]string{{"a", "b"}, {"ab", ""}, {"a", "bc"}, {"b", "b"}} {
		id := uuidOf(pair[0], pair[1])
		if seen[id] || len(id) != 36 || id[14] != '8' || !strings.ContainsRune("89ab", rune(id[19])) {
			t.Errorf("%v: %s", pair, id)
		}
		seen[id] = true
	}
}

// A file system that somebody unmounted is missed, mounted again, and nothing is made below its empty mount point meanwhile.
func TestConfigureDevices_unmounted(t *testing.T) {
	path := loopDevice(t)
	l := newLocal(t, api.DeletionRetain)
	mount := with(t, l, path)
	configure(t, l)
	brick(t, filepath.Join(brickRoot(mount), "v.1"))
	if !(Glusterd{}).DevicesKept(l) {
		t.Error("it is mounted, and missed")
	}
	run(t, "umount", mount)
	if (Glusterd{}).DevicesKept(l) {
		t.Error("nobody misses it")
	}
	if s := stores(l)[0]; s.Problem == "" || len(s.Bricks) != 0 {
		t.Errorf("the store that is not mounted: %+v", s)
	}
	if left, err := os.ReadDir(mount); err != nil || len(left) != 0 {
		t.Errorf("below the empty mount point: %v %v", left, err)
	}
	with(t, l, path)
	configure(t, l)
	if s := stores(l)[0]; s.Problem != "" || len(s.Bricks) != 1 || !(Glusterd{}).DevicesKept(l) {
		t.Errorf("mounted again: %+v", s)
	}
}
