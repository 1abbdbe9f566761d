package ceph

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// withDB is an OSD on a device as it is now, with its database on a disk. It does what an agent does before it configures it.
func withDB(t *testing.T, path, disk, id, uuid string) *service.Local {
	t.Helper()
	l := local(t, "ceph-osd", id, map[string]string{paramOSDUUID: uuid})
	l.Daemon.Spec.Devices = []api.DaemonDevice{
		{Name: deviceBlock, ID: scan(t, path).ID}, {Name: deviceDB, ID: "partuuid-" + uuid, Of: "", Bytes: 1 << 30},
	}
	s := &inventory.Scanner{Only: func(d api.Device) bool { return d.Path == disk }}
	devices, err := s.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Daemon.Spec.Devices[1].Of = devices[slices.IndexFunc(devices, func(d api.Device) bool { return d.Path == disk })].ID
	lookAt(t, l, path, disk)
	return l
}

// lookAt finds the devices anew.
func lookAt(t *testing.T, l *service.Local, paths ...string) {
	t.Helper()
	s := &inventory.Scanner{Only: func(d api.Device) bool { return slices.Contains(paths, d.Path) }}
	devices, err := s.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Inventory, l.Devices = devices, map[string]api.Device{}
	for _, want := range l.Daemon.Spec.Devices {
		if i := slices.IndexFunc(devices, func(d api.Device) bool { return d.ID == want.ID }); i >= 0 {
			l.Devices[want.Name] = devices[i]
		}
	}
}

// bring makes the OSD as an agent does.
func bring(ctx context.Context, t *testing.T, l *service.Local, paths ...string) error {
	t.Helper()
	lookAt(t, l, paths...)
	if len(l.Devices) < len(l.Daemon.Spec.Devices) {
		if err := (OSD{}).MakeDevices(ctx, l); err != nil {
			return err
		}
		lookAt(t, l, paths...)
	}
	return OSD{}.ConfigureLocalService(ctx, l)
}

// The life of two OSDs with their databases on one disk.
func TestOSD_database(t *testing.T) {
	one, two, disk := loopDevice(t), loopDevice(t), loopDevice(t)
	a, b := withDB(t, one, disk, "7", ours), withDB(t, two, disk, "8", other)
	for range 2 {
		for l, path := range map[*service.Local]string{a: one, b: two} {
			if err := bring(t.Context(), t, l, path, disk); err != nil {
				t.Fatal(err)
			}
		}
	}
	lookAt(t, a, one, disk)
	db := a.Devices[deviceDB]
	label, err := bluestore.ReadLabel(db.Path)
	if err != nil || label.OSDUUID != ours || label.Part() != "db" || db.Size.Value() != 1<<30 || db.Ceph == nil || db.Ceph.Part != "db" {
		t.Errorf("label %+v, %v, device %+v", label, err, db)
	}
	if now, err := filepath.EvalSymlinks(filepath.Join(a.Data, directoryName, deviceDB)); err != nil || now != db.Path {
		t.Errorf("the link leads to %s (%v)", now, err)
	}
	fsck(t, a)
	a.Daemon.Spec.OnRemoval = api.DeletionRetain
	before := head(t, db.Path)
	if err := (OSD{}).DestroyLocalService(t.Context(), a); err != nil || !bytes.Equal(before, head(t, db.Path)) {
		t.Errorf("retain touched the database (%v)", err)
	}
	// The OSD failed, and its disk is gone: another one takes its place on the disk for databases.
	a.Parameters[paramDrain] = drainReplace
	delete(a.Devices, deviceBlock)
	for range 2 {
		if err := (OSD{}).DestroyLocalService(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	lookAt(t, a, one, disk)
	if _, there := a.Devices[deviceDB]; there {
		t.Error("the partition is there after the OSD was replaced")
	}
	lookAt(t, b, two, disk)
	b.Daemon.Spec.OnRemoval = api.DeletionWipe
	if err := (OSD{}).DestroyLocalService(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	free(t, two, disk)
}

// What the database of an OSD was on is lost: nothing is made in its place.
func TestOSD_databaseLost(t *testing.T) {
	path, disk := loopDevice(t), loopDevice(t)
	l := withDB(t, path, disk, "7", ours)
	if err := bring(t.Context(), t, l, path, disk); err != nil {
		t.Fatal(err)
	}
	part := l.Devices[deviceDB].Path
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 8<<10), 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := bring(t.Context(), t, l, path, disk); err == nil || !strings.Contains(err.Error(), "has no label, and osd.7 had its block.db there: nothing was touched") {
		t.Errorf("an empty database: %v", err)
	}
	if err := bring(t.Context(), t, l, path); err == nil || !strings.Contains(err.Error(), "is not on this host: put it back") {
		t.Errorf("no disk: %v", err)
	}
	if out, err := exec.Command("sfdisk", "-q", "--no-reread", "--no-tell-kernel", "--delete", disk, "1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("partx", "--delete", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := bring(t.Context(), t, l, path, disk); err == nil || !strings.Contains(err.Error(), "does not have the block.db of osd.7") {
		t.Errorf("another disk: %v", err)
	}
}

// While ceph-osd makes an OSD it has the lock of each disk that it is on a part of.
func TestMakeOSD_holdsItsDisks(t *testing.T) {
	bin, data, disk := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "disk")
	for path, text := range map[string]string{disk: "", filepath.Join(bin, "ceph-osd"): "#!/bin/sh\nreadlink /proc/$$/fd/4 > held\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d := &api.Daemon{Spec: api.DaemonSpec{ID: "7", Devices: []api.DaemonDevice{{Name: deviceBlock, ID: "partuuid-1", Of: "wwn-1"}, {Name: deviceDB, ID: "partuuid-2", Of: "wwn-1"}}}}
	l := &service.Local{Daemon: d, Data: data, Inventory: []api.Device{{ID: "wwn-1", Path: disk}}}
	if err := makeOSD(t.Context(), l, data, nil); err != nil {
		t.Fatal(err)
	}
	if held, err := os.ReadFile(filepath.Join(data, "held")); err != nil || strings.TrimSpace(string(held)) != disk {
		t.Errorf("%q, %v; want %s", held, err, disk)
	}
}
