package lvm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/blank"
)

// These tests have the real LVM make groups on loop devices, and need root. Where the kernel has no device-mapper, volumes are there in LVM's records
// alone, which is what is removed; the virtual machine of the end-to-end tests has it.

// loop attaches a new file to a loop device.
func loop(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "holdfast-lvm-test.img")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 64<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", name).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	disk := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", disk).CombinedOutput(); err != nil {
			t.Errorf("losetup: %v: %s", err, out)
		}
	})
	return disk
}

func lvm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := run(t.Context(), args[0], args[1:]...); err != nil {
		t.Fatal(err)
	}
}

// made makes a volume for an OSD in a group, and says what LVM calls it.
func made(t *testing.T, group, name, osd string) Volume {
	t.Helper()
	lvm(t, "lvcreate", "--driverloaded", "n", "--activate", "n", "--zero", "n", "--wipesignatures", "n", "--name", name, "--size", "8M", "--addtag", "ceph.osd_fsid="+osd, group)
	rows, err := report(t.Context(), "lvs", "vg_uuid,lv_uuid", "vg_name="+group+"&&lv_name="+name)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	return Volume{strings.ReplaceAll(rows[0]["vg_uuid"], "-", ""), strings.ReplaceAll(rows[0]["lv_uuid"], "-", "")}
}

// left are the volumes of a group, if it is there.
func left(t *testing.T, group string) (names string, there bool) {
	t.Helper()
	groups, err := report(t.Context(), "vgs", "vg_name", "vg_name="+group)
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := report(t.Context(), "lvs", "lv_name", "vg_name="+group)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes {
		names += " " + v["lv_name"]
	}
	return strings.TrimSpace(names), len(groups) > 0
}

// signed says whether anything is on a disk.
func signed(t *testing.T, disk string) bool {
	t.Helper()
	out, err := exec.Command("wipefs", "--noheadings", disk).Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, found, err := blank.Look(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return len(out) > 0 || found
}

// fill writes somebody's data all over a disk.
func fill(t *testing.T, disk string) {
	t.Helper()
	if err := os.WriteFile(disk, bytes.Repeat([]byte("row 4711\n"), 64<<20/9), 0); err != nil {
		t.Fatal(err)
	}
}

func TestVolume_Remove(t *testing.T) {
	disk, second := loop(t), loop(t)
	fill(t, disk)
	group, one, two := "ceph-"+uuid.NewString(), uuid.NewString(), uuid.NewString()
	lvm(t, "vgcreate", group, disk, second)
	a, b := made(t, group, "osd-block-"+one, one), made(t, group, "osd-db-"+two, two)
	file := filepath.Join(t.TempDir(), "disks.json")
	if err := a.Remove(t.Context(), two, true, file); err != nil {
		t.Fatal(err)
	}
	if names, _ := left(t, group); len(strings.Fields(names)) != 2 {
		t.Fatalf("one of another OSD is removed: %q is left", names)
	}
	if err := a.Remove(t.Context(), one, false, file); err == nil || !strings.Contains(err.Error(), "it was not wiped") {
		t.Errorf("a volume that nobody has wiped: %v", err)
	}
	for range 2 {
		if err := a.Remove(t.Context(), one, true, file); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := left(t, group); names != "osd-db-"+two {
		t.Fatalf("%q is left", names)
	}
	for range 2 {
		if err := b.Remove(t.Context(), two, true, file); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := left(t, group); there || signed(t, disk) || signed(t, second) {
		t.Error("the disks are not free")
	}
}

// What was cut off when the group was gone, and its disks not yet free, is done again; and a disk that is in another group by then is left alone.
func TestVolume_Remove_cutOff(t *testing.T) {
	disk, taken := loop(t), loop(t)
	fill(t, disk)
	group, osd := "ceph-"+uuid.NewString(), uuid.NewString()
	lvm(t, "vgcreate", group, disk, taken)
	v := made(t, group, "osd-block-"+osd, osd)
	file := filepath.Join(t.TempDir(), "disks.json")
	lvm(t, "lvremove", "--yes", group+"/osd-block-"+osd)
	if err := v.removeGroup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	other := "other-" + uuid.NewString()
	lvm(t, "vgcreate", other, taken)
	t.Cleanup(func() {
		if _, err := run(context.Background(), "vgremove", other); err != nil { // the test's own context has ended
			t.Error(err)
		}
	})
	if !signed(t, disk) {
		t.Fatal("the disk is free already")
	}
	// Power fails while the label is the last that is left of it.
	restore := atomicfile.Cut(filepath.Dir(disk), 1)
	if err := v.Remove(t.Context(), osd, true, file); !errors.Is(err, atomicfile.ErrCut) || !restore() || !signed(t, disk) {
		t.Fatalf("cut off: %v", err)
	}
	for range 2 {
		if err := v.Remove(t.Context(), osd, true, file); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := left(t, other); !there || signed(t, disk) || !signed(t, taken) {
		t.Error("the disk is not free, or the one of another group is")
	}
}

// What a person has named stays.
func TestVolume_Remove_named(t *testing.T) {
	disk := loop(t)
	group, osd := "ceph-fast-"+uuid.NewString(), uuid.NewString()
	lvm(t, "vgcreate", group, disk)
	v := made(t, group, "fast", osd)
	if err := v.Remove(t.Context(), osd, true, filepath.Join(t.TempDir(), "disks.json")); err != nil {
		t.Fatal(err)
	}
	if names, _ := left(t, group); names != "fast" {
		t.Errorf("%q is left", names)
	}
	lvm(t, "lvremove", "--yes", group+"/fast")
	if err := v.Remove(t.Context(), osd, true, filepath.Join(t.TempDir(), "disks.json")); err != nil {
		t.Fatal(err)
	}
	if _, there := left(t, group); !there {
		t.Error("a group that a person has named is removed")
	}
	lvm(t, "vgremove", group)
}

// A group of which a disk is missing is not removed, and holds up nothing.
func TestVolume_Remove_missingDisk(t *testing.T) {
	disk, broken := loop(t), loop(t)
	group, osd := "ceph-"+uuid.NewString(), uuid.NewString()
	lvm(t, "vgcreate", group, disk, broken)
	v := made(t, group, "osd-block-"+osd, osd)
	if out, err := exec.Command("wipefs", "--all", "--force", broken).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := v.Remove(t.Context(), osd, true, filepath.Join(t.TempDir(), "disks.json")); err != nil {
		t.Fatal(err)
	}
	if names, there := left(t, group); !there || names != "" {
		t.Errorf("of the group %q is left", names)
	}
	lvm(t, "vgreduce", "--removemissing", group)
	lvm(t, "vgremove", group)
}

// Where LVM hangs, who waits for it is told.
func TestRun_hangs(t *testing.T) {
	one <- struct{}{}
	defer func() { <-one }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := run(ctx, "lvs"); err == nil || !strings.Contains(err.Error(), "an earlier run of LVM has not ended") {
		t.Error(err)
	}
}

func TestVolume_Activate_gone(t *testing.T) {
	if err := (Volume{group, volume}).Activate(t.Context()); err != nil {
		t.Errorf("a volume whose disk is not there is an error: %v", err)
	}
}
