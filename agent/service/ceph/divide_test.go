package ceph

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

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/partition"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// shareOn is an OSD on a part of a disk, with its log on a part of the same one or of another.
func shareOn(t *testing.T, disk, logs, id, uuid string) *service.Local {
	t.Helper()
	l := local(t, "ceph-osd", id, map[string]string{paramOSDUUID: uuid})
	l.Daemon.Spec.Devices = []api.DaemonDevice{
		{Name: deviceBlock, ID: "partuuid-" + uuid, Of: scan(t, disk).ID, Bytes: 1500 << 20},
		{Name: deviceWAL, ID: "partuuid-" + uuid[:len(uuid)-1] + "0", Of: scan(t, logs).ID, Bytes: 128 << 20},
	}
	return l
}

func fsck(t *testing.T, l *service.Local) {
	t.Helper()
	if out, err := exec.Command("ceph-bluestore-tool", "fsck", "--path", filepath.Join(l.Data, directoryName)).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("success")) {
		t.Errorf("fsck of osd.%s: %v: %s", l.Daemon.Spec.ID, err, out)
	}
}

// free fails the test unless nothing is left on the disks.
func free(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if d := scan(t, path); d.Availability != api.DeviceAvailable {
			t.Errorf("%s is not free after the wipe: %v", path, d.Reasons)
		}
	}
}

// The life of two OSDs on one disk, with their logs on another: each has what is its own, whatever becomes of the other one, and the disks are empty when
// both have left.
func TestOSD_divided(t *testing.T) {
	disk, logs := loopDevice(t), loopDevice(t)
	a, b := shareOn(t, disk, logs, "7", ours), shareOn(t, disk, logs, "8", other)
	for range 2 {
		for _, l := range []*service.Local{a, b} {
			if err := bring(t.Context(), t, l, disk, logs); err != nil {
				t.Fatal(err)
			}
		}
	}
	lookAt(t, a, disk, logs)
	if d := a.Devices[deviceBlock]; d.Size.Value() != 1500<<20 || d.Ceph == nil || d.Ceph.OSDUUID != ours || d.Ceph.Part != "" || d.Parent == "" {
		t.Errorf("%+v", d)
	}
	if label, err := bluestore.ReadLabel(a.Devices[deviceWAL].Path); err != nil || label.OSDUUID != ours || label.Part() != "wal" {
		t.Errorf("label %+v, %v", label, err)
	}
	fsck(t, a)
	// One that failed and is replaced keeps its data where nothing is to be lost, and gives the log back.
	before := head(t, a.Devices[deviceBlock].Path)
	a.Daemon.Spec.OnRemoval, a.Parameters[paramDrain] = api.DeletionRetain, drainReplace
	if err := (OSD{}).DestroyLocalService(t.Context(), a); err != nil || !bytes.Equal(before, head(t, a.Devices[deviceBlock].Path)) {
		t.Errorf("retain touched the data (%v)", err)
	}
	a.Daemon.Spec.OnRemoval = api.DeletionWipe
	for range 2 {
		lookAt(t, a, disk, logs)
		if err := (OSD{}).DestroyLocalService(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if lookAt(t, a, disk, logs); len(a.Devices) > 0 {
		t.Errorf("there are %+v", a.Devices)
	}
	fsck(t, b)
	lookAt(t, b, disk, logs)
	if err := (OSD{}).DestroyLocalService(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	free(t, disk, logs)
}

// What an OSD had its data on is lost: nothing is made in its place. One that the kernel does not show is found.
func TestOSD_dividedLost(t *testing.T) {
	disk, logs := loopDevice(t), loopDevice(t)
	l := shareOn(t, disk, logs, "7", ours)
	if err := bring(t.Context(), t, l, disk, logs); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("partx", "--delete", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := bring(t.Context(), t, l, disk, logs); err != nil {
		t.Errorf("not shown by the kernel: %v", err)
	}
	fsck(t, l)
	if err := bring(t.Context(), t, l, logs); err == nil || !strings.Contains(err.Error(), "is not on this host: put it back") {
		t.Errorf("no disk: %v", err)
	}
	lookAt(t, l, disk, logs)
	f, err := os.OpenFile(l.Devices[deviceBlock].Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 8<<10), 0)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := bring(t.Context(), t, l, disk, logs); err == nil || !strings.Contains(err.Error(), "has no label, and osd.7 was made on it before") {
		t.Errorf("an empty part: %v", err)
	}
	for _, args := range [][]string{{"sfdisk", "-q", "--no-reread", "--no-tell-kernel", "--delete", disk, "1"}, {"partx", "--delete", disk}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := bring(t.Context(), t, l, disk, logs); err == nil || !strings.Contains(err.Error(), "does not have the block of osd.7, which was made before") {
		t.Errorf("another disk: %v", err)
	}
}

// Cut off at many points, two OSDs that are made on one disk are brought to their end by the next try.
func TestOSD_dividedCutOff(t *testing.T) {
	disk, logs := loopDevice(t), loopDevice(t)
	cut := 0
	for _, ms := range []int{5, 20, 60, 120, 250} {
		both := []*service.Local{shareOn(t, disk, logs, "7", ours), shareOn(t, disk, logs, "8", other)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
		for _, l := range both {
			if bring(ctx, t, l, disk, logs) != nil {
				cut++
			}
		}
		cancel()
		for _, l := range both {
			if err := bring(t.Context(), t, l, disk, logs); err != nil {
				t.Fatalf("cut off after %v ms, then: %v", ms, err)
			}
			lookAt(t, l, disk, logs)
			if label, err := bluestore.ReadLabel(l.Devices[deviceBlock].Path); err != nil || !label.MkfsDone() {
				t.Fatalf("cut off after %v ms: label %+v, %v", ms, label, err)
			}
		}
		for _, l := range both {
			if err := (OSD{}).DestroyLocalService(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cut < 3 {
		t.Errorf("it was cut off %d times", cut)
	}
}

// While an OSD is made, others come and go on the disk of its log.
func TestOSD_dividedBusy(t *testing.T) {
	disk, logs := loopDevice(t), loopDevice(t)
	guest := shareOn(t, disk, logs, "8", other)
	made := []*service.Local{shareOn(t, disk, logs, "7", ours), shareOn(t, disk, logs, "7", ours), shareOn(t, disk, logs, "7", ours)}
	lookAt(t, guest, disk, logs)
	x := guest.Daemon.Spec.Devices[1]
	stays := x // without it the table would come and go, too
	stays.ID = "partuuid-" + other[:len(other)-1] + "9"
	if err := makePart(t.Context(), guest, stays, diskOf(guest, stays), false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		changes := 0
		for ; ctx.Err() == nil; changes++ {
			err := makePart(t.Context(), guest, x, diskOf(guest, x), false)
			if err == nil {
				err = partition.Remove(t.Context(), logs, tableID(guest, x.Of), partUUID(x), func(string) error { return nil })
			}
			if err != nil {
				t.Error(err)
				break
			}
		}
		ended <- changes
	}()
	for _, l := range made {
		if err := bring(t.Context(), t, l, disk, logs); err != nil {
			t.Error(err)
		}
		lookAt(t, l, disk, logs)
		if err := (OSD{}).DestroyLocalService(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if changes := <-ended; changes < 3 {
		t.Errorf("the table was changed %d times", changes)
	}
}
