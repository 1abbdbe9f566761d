package ceph

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/luks"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// Where TestOSD_encrypted runs in a virtual machine (test/e2e), it has a disk there, and in the place of ceph-osd a program that writes this label.
const (
	diskVariable  = "HOLDFAST_TEST_DISK"
	labelVariable = "HOLDFAST_TEST_LABEL"
)

// secretOSD is an OSD on a device that is to be encrypted.
func secretOSD(t *testing.T, path, id, cluster, uuid string, key byte) *service.Local {
	t.Helper()
	l := osdOn(t, path, id, uuid)
	l.Parameters[paramFSID] = cluster
	l.Daemon.Spec.Parameters = l.Parameters
	l.Daemon.Spec.Devices = []api.DaemonDevice{{Name: deviceBlock, ID: l.Devices[deviceBlock].ID, KeySecret: "s"}}
	l.Keys = map[string][]byte{deviceBlock: bytes.Repeat([]byte{key}, luks.KeySize)}
	return l
}

// A process is not started again on an encrypted device that is not open, as after a boot.
func TestOSD_kept(t *testing.T) {
	l := secretOSD(t, loopDevice(t), "7", fsid, ours, 1)
	link := filepath.Join(l.Data, directoryName, "block")
	if err := atomicfile.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := linkDevice(link, l.Devices[deviceBlock].Path); err != nil {
		t.Fatal(err)
	}
	if (OSD{}).Kept(l) {
		t.Error("an encrypted device that is not open is kept")
	}
	l.Daemon.Spec.Devices[0].KeySecret = ""
	if !(OSD{}).Kept(l) {
		t.Error("a device that is not encrypted is not kept")
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if (OSD{}).Kept(l) {
		t.Error("an OSD without the link to its device is started again without it")
	}
}

// The life of an OSD on a device that is encrypted; where the kernel cannot do that, the device is left as it is.
func TestOSD_encrypted(t *testing.T) {
	path := os.Getenv(diskVariable)
	if path == "" {
		path = loopDevice(t)
	}
	if err := luks.Available(); err != nil {
		if os.Getenv(diskVariable) != "" {
			t.Fatal(err)
		}
		l := secretOSD(t, path, "7", fsid, ours, 1)
		if err := (OSD{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "on this host: the kernel has no device-mapper") {
			t.Errorf("without dm-crypt: %v", err)
		}
		if !bytes.Equal(head(t, path), make([]byte, 64<<10)) {
			t.Error("the device was written to")
		}
		return
	}
	id, cluster, uuid := "7", fsid, ours
	if file := os.Getenv(labelVariable); file != "" {
		label, err := bluestore.ReadLabel(file)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := label.OSDID()
		id, cluster, uuid = strconv.Itoa(int(n)), label.ClusterFSID(), label.OSDUUID
	}
	l := secretOSD(t, path, id, cluster, uuid, 1)
	again := func() error {
		l.Devices[deviceBlock] = scan(t, path)
		return OSD{}.ConfigureLocalService(t.Context(), l)
	}
	for range 2 {
		if err := again(); err != nil {
			t.Fatal(err)
		}
	}
	seen := scan(t, path)
	if seen.Availability == api.DeviceAvailable || seen.Ceph == nil || seen.Ceph.OSDUUID != uuid || seen.Ceph.FSID != cluster || seen.Ceph.Part != "" {
		t.Errorf("the inventory shows %+v, %+v", seen, seen.Ceph)
	}
	clear := ownerOf(l, deviceBlock).Path()
	if !(OSD{}).Kept(l) {
		t.Errorf("%s is open, and is said to be not", clear)
	}
	for range 2 {
		if err := (OSD{}).CloseDevices(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(clear); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there after it was closed: %v", clear, err)
	}
	if start := begin(t, path, 32<<20); bytes.Contains(start, []byte(bluestore.Magic)) {
		t.Error("what is on the device can be read by everybody")
	}
	foreign := secretOSD(t, path, "8", cluster, other, 1)
	if err := (OSD{}).ConfigureLocalService(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), "not touched") {
		t.Errorf("another OSD: %v", err)
	}
	thief := secretOSD(t, path, id, cluster, uuid, 2)
	if err := (OSD{}).ConfigureLocalService(t.Context(), thief); err == nil || !strings.Contains(err.Error(), "in Secret s, does not open it") {
		t.Errorf("another key: %v", err)
	}
	if err := again(); err != nil {
		t.Fatalf("opened again: %v", err)
	}
	if label, err := bluestore.ReadLabel(clear); err != nil || label.OSDUUID != uuid {
		t.Errorf("what was on the device: %+v, %v", label, err)
	}
	if err := (OSD{}).DestroyLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if d := scan(t, path); d.Availability != api.DeviceAvailable {
		t.Errorf("after the wipe the device is not free: %v", d.Reasons)
	}
	if err := again(); err == nil || !strings.Contains(err.Error(), "is not encrypted any more, and osd."+id+" had its data on it") {
		t.Errorf("an empty disk in the place of the OSD's own: %v", err)
	}
	// Encrypting is cut off before there is a key.
	o := ownerOf(l, deviceBlock)
	if err := luks.Format(t.Context(), path, o, l.Keys[deviceBlock]); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cryptsetup", "erase", "--batch-mode", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if l = secretOSD(t, path, id, cluster, uuid, 1); again() != nil {
		t.Errorf("after it was cut off: %v", again())
	}
	if err := (OSD{}).CloseDevices(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// A database that was kept (deletionPolicy Retain) is met by an OSD of another number, with a Secret of its own.
func TestOtherKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(file, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &api.Daemon{Spec: api.DaemonSpec{
		Type: "ceph-osd", ID: "9", Parameters: map[string]string{paramFSID: fsid, paramOSDUUID: ours}, Devices: []api.DaemonDevice{{Name: deviceDB, KeySecret: "ceph-osd-9"}},
	}}
	l := &service.Local{
		Daemon: d, Parameters: d.Spec.Parameters, Devices: map[string]api.Device{deviceDB: {ID: "partuuid-1", Path: file}},
		Keys: map[string][]byte{deviceDB: bytes.Repeat([]byte{1}, luks.KeySize)},
	}
	if err := luks.Format(t.Context(), file, ownerOf(l, deviceDB), l.Keys[deviceDB]); err != nil {
		t.Fatal(err)
	}
	if err := otherKey(t.Context(), l, deviceDB); err != nil {
		t.Errorf("its own: %v", err)
	}
	l.Keys[deviceDB] = bytes.Repeat([]byte{2}, luks.KeySize)
	err := otherKey(t.Context(), l, deviceDB)
	for _, want := range []string{"holds the db of an earlier OSD", "Secret ceph-osd-9", "blkdiscard --force " + file} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	d.Spec.Parameters[paramOSDUUID] = other
	if err := otherKey(t.Context(), l, deviceDB); err != nil {
		t.Errorf("another OSD's, of which more is said elsewhere: %v", err)
	}
}
