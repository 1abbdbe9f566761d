package deviceaction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	"github.com/holdfast-storage/holdfast/agent/inventory"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// These tests use loop devices of their own, and need root.

// run runs a program of the machine.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v (these tests need root): %v: %s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// bed is a host with one real disk.
type bed struct {
	*fake
	path string
	id   string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 200<<20)); err != nil {
		t.Fatal(err)
	}
	path := run(t, "losetup", "-f", "--show", file)
	t.Cleanup(func() {
		_ = exec.Command("partx", "--delete", path).Run() // what a test that failed has left
		run(t, "losetup", "-d", path)
	})
	b := &bed{newFake(t), path, "file-" + file}
	s := &inventory.Scanner{Only: func(d api.Device) bool { return d.Path == path }}
	b.Scan, b.Busy = s.Rescan, s.Busy
	return b
}

// wipe is an action that wipes the disk.
func (b *bed) wipe(parameters ...string) *api.Action {
	return newAction(hostaction.Wipe, "device/"+b.path, append(parameters, hostaction.ParamConfirm, b.id)...)
}

// partitioned has a table with two partitions on the disk, and file systems on them.
func (b *bed) partitioned(t *testing.T) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(script, []byte("label: gpt\nsize=100M\nsize=50M\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "sh", "-c", "sfdisk -q --no-reread --no-tell-kernel "+b.path+" <"+script)
	run(t, "partx", "--add", b.path)
	run(t, "mkfs.ext4", "-q", b.path+"p1")
	run(t, "mkfs.ext4", "-q", b.path+"p2")
}

func (b *bed) device(t *testing.T) *api.Device {
	t.Helper()
	all, err := b.Scan(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	return &all[0]
}

func TestWipe(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, b *bed){
		"empty":         func(*testing.T, *bed) {},
		"a file system": func(t *testing.T, b *bed) { run(t, "mkfs.ext4", "-q", b.path) },
		"partitions":    func(t *testing.T, b *bed) { b.partitioned(t) },
		"swap space":    func(t *testing.T, b *bed) { run(t, "mkswap", b.path) },
		"half a file system": func(t *testing.T, b *bed) {
			run(t, "mkfs.ext4", "-q", b.path)
			run(t, "dd", "if=/dev/zero", "of="+b.path, "bs=64k", "count=1", "status=none")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			spoil(t, b)
			held := false
			b.Hold = func(ids []string, _ string) func() {
				held = slices.Contains(ids, b.id)
				return func() {}
			}
			message, err := do(t, &wipe{b.Host}, b.wipe(hostaction.ParamDevice, b.id))
			want := fmt.Sprintf("device %s (%s) of host h1 is wiped and available", b.id, b.path)
			if err != nil || message != want {
				t.Errorf("%q, %v", message, err)
			}
			if d := b.device(t); d.Taken() != "" {
				t.Errorf("afterwards: %s", d.Taken())
			}
			if !held || b.reports != 1 {
				t.Errorf("held %t, %d reports", held, b.reports)
			}
		})
	}
}

// A table of the same partitions shows nothing of what was on them.
func TestWipe_sameTableAgain(t *testing.T) {
	b := newBed(t)
	b.partitioned(t)
	if _, err := do(t, &wipe{b.Host}, b.wipe()); err != nil {
		t.Fatal(err)
	}
	run(t, "sh", "-c", "printf 'label: gpt\nsize=100M\nsize=50M\n' | sfdisk -q --no-reread --no-tell-kernel "+b.path)
	run(t, "partx", "--add", b.path)
	all, err := b.Scan(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, d := range all {
		if d.Filesystem != nil {
			t.Errorf("%s has a file system: %+v", d.Path, d.Filesystem)
		}
	}
}

// TestWipe_killed: an agent that is killed after any of its writes is followed by one that wipes the disk to the end.
func TestWipe_killed(t *testing.T) {
	errKilled := errors.New("killed")
	for at := 1; ; at++ {
		b := newBed(t)
		b.partitioned(t)
		n := 0
		unwatch := atomicfile.Watch(filepath.Dir(b.path), func(effect func() error) error {
			if n++; n >= at {
				return errKilled
			}
			return effect()
		})
		_, err := do(t, &wipe{b.Host}, b.wipe())
		unwatch()
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		// The next agent finds step "wipe" recorded as begun, and calls it again.
		for _, step := range wipeKind.Steps {
			if _, err := (&wipe{b.Host}).Step(t.Context(), b.wipe(), step); err != nil {
				t.Fatalf("after write %d: step %s: %v", at, step, err)
			}
		}
		if d := b.device(t); d.Taken() != "" {
			t.Errorf("after write %d: %s", at, d.Taken())
		}
		if err == nil {
			if at < 3 {
				t.Errorf("a wipe has only %d writes", at-1)
			}
			return
		}
	}
}

func daemonOn(device, of string) *api.Daemon {
	return &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-3"},
		Spec:       api.DaemonSpec{Cluster: "ceph", Devices: []api.DaemonDevice{{Name: "block", ID: device, Of: of}}},
	}
}

// A disk that anybody may need is refused, and not touched.
func TestWipe_refused(t *testing.T) {
	with := func(d *api.Daemon) func(*testing.T, *bed, *api.Action) {
		return func(_ *testing.T, b *bed, _ *api.Action) {
			for i := range d.Spec.Devices {
				for _, id := range []*string{&d.Spec.Devices[i].ID, &d.Spec.Devices[i].Of} {
					if *id == "disk" {
						*id = b.id
					}
				}
			}
			b.Daemons = func() ([]*api.Daemon, bool) { return []*api.Daemon{d}, true }
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b *bed, a *api.Action)
		want  string
	}{
		"mounted": {func(t *testing.T, b *bed, _ *api.Action) { mount(t, b.path) }, "mounted at"},
		"a partition is mounted": {func(t *testing.T, b *bed, _ *api.Action) {
			b.partitioned(t)
			mountAsIs(t, b.path+"p2")
		}, "partition "},
		"open exclusively": {func(t *testing.T, b *bed, _ *api.Action) { hold(t, b.path) }, "is in use"},
		"a partition is open": {func(t *testing.T, b *bed, _ *api.Action) {
			b.partitioned(t)
			hold(t, b.path+"p1")
		}, "is in use"},
		"read-only":             {func(t *testing.T, b *bed, _ *api.Action) { readOnly(t, b.path) }, "is read-only"},
		"a daemon has it":       {with(daemonOn("disk", "")), "is in use by daemon ceph-osd-3 of cluster default/ceph"},
		"a daemon's part of it": {with(daemonOn("partuuid-7", "disk")), "is in use by daemon ceph-osd-3"},
		"the agent is at work": {func(_ *testing.T, b *bed, _ *api.Action) {
			b.Working = func(string) string { return "is being prepared for osd.3" }
		}, "the agent is at work on it"},
		"another confirmation": {func(_ *testing.T, _ *bed, a *api.Action) {
			a.Spec.Parameters[hostaction.ParamConfirm] = "wwn-1"
		}, `the parameter "confirm" is "wwn-1"`},
		"no confirmation": {func(_ *testing.T, _ *bed, a *api.Action) {
			delete(a.Spec.Parameters, hostaction.ParamConfirm)
		}, `the parameter "confirm" must be`},
		"two devices are named": {func(_ *testing.T, _ *bed, a *api.Action) {
			a.Spec.Parameters[hostaction.ParamDevice] = "wwn-1"
		}, "no device of host h1 matches wwn-1"},
		"its file was deleted": {func(t *testing.T, b *bed, a *api.Action) {
			if err := os.Remove(strings.TrimPrefix(b.id, "file-")); err != nil {
				t.Fatal(err)
			}
			a.Spec.Parameters[hostaction.ParamConfirm] = api.ActionParameter(b.device(t).ID)
		}, "has no persistent id"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			a := b.wipe()
			run(t, "mkfs.ext4", "-q", "-L", "precious", b.path)
			c.spoil(t, b, a)
			_, err := do(t, &wipe{b.Host}, a)
			if !errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			// What was refused at the start is refused half-way, too.
			if hostaction.Check(a) == nil && a.Spec.Parameters[hostaction.ParamDevice] == "" {
				if _, err := (&wipe{b.Host}).Step(t.Context(), a, "wipe"); !errors.Is(err, action.ErrRefused) {
					t.Errorf("the step: %v", err)
				}
			}
			if content, _ := b.Scan(t.Context()); len(content) == 0 || content[0].Taken() == "" {
				t.Errorf("the device was touched: %+v", content)
			}
		})
	}
}

// TestWipe_claimedMeanwhile: a daemon that comes between the check and the wipe keeps its disk.
func TestWipe_claimedMeanwhile(t *testing.T) {
	b := newBed(t)
	run(t, "mkfs.ext4", "-q", b.path)
	asked := 0
	b.Daemons = func() ([]*api.Daemon, bool) {
		if asked++; asked == 1 {
			return nil, true
		}
		return []*api.Daemon{daemonOn(b.id, "")}, true
	}
	if _, err := (&wipe{b.Host}).Step(t.Context(), b.wipe(), "wipe"); !errors.Is(err, action.ErrRefused) || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if d := b.device(t); d.Filesystem == nil {
		t.Error("it was wiped")
	}
}

// What is not known yet, or cannot be asked, is waited for.
func TestWipe_waits(t *testing.T) {
	unknown := errors.New("unknown")
	for name, spoil := range map[string]func(b *bed){
		"which daemons there are": func(b *bed) { b.Daemons = func() ([]*api.Daemon, bool) { return nil, false } },
		"which devices there are": func(b *bed) {
			b.Scan = func(context.Context) ([]api.Device, error) { return nil, unknown }
		},
		"who uses it": func(b *bed) {
			b.Busy = func(context.Context, string) ([]string, error) { return nil, unknown }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			run(t, "mkfs.ext4", "-q", b.path)
			scan := b.Scan
			spoil(b)
			if _, err := do(t, &wipe{b.Host}, b.wipe()); err == nil || errors.Is(err, action.ErrRefused) {
				t.Errorf("got %v", err)
			}
			b.Scan = scan
			if d := b.device(t); d.Filesystem == nil {
				t.Error("it was wiped")
			}
		})
	}
}

func mount(t *testing.T, path string) {
	t.Helper()
	run(t, "mkfs.ext4", "-q", "-F", path)
	mountAsIs(t, path)
}

func mountAsIs(t *testing.T, path string) {
	t.Helper()
	at := t.TempDir()
	run(t, "mount", path, at)
	t.Cleanup(func() { run(t, "umount", at) })
}

// hold opens a device exclusively, as a daemon does.
func hold(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}

func readOnly(t *testing.T, path string) {
	t.Helper()
	run(t, "blockdev", "--setro", path)
	t.Cleanup(func() { run(t, "blockdev", "--setrw", path) })
}
