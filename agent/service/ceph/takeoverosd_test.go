package ceph

import (
	"bytes"
	"context"
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
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// TestAdoptable is the last guard before 'ceph-osd --mkfs': what is not an OSD as a whole is never made one in the course of a hand-over.
func TestAdoptable(t *testing.T) {
	path := loopDevice(t)
	l := osdOn(t, path, "3", ours)
	l.Parameters[api.ParameterForeign] = fsid
	l.Daemon.Spec.Devices = []api.DaemonDevice{{Name: deviceBlock, ID: l.Devices[deviceBlock].ID}}
	configure := func(want string) {
		t.Helper()
		if err := (OSD{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if !bytes.Equal(head(t, path), make([]byte, 64<<10)) {
			t.Error("the device was written to")
		}
	}
	configure("does not hold osd.3. The process of before was left alone")
	l.Daemon.Spec.Devices = append(l.Daemon.Spec.Devices, api.DaemonDevice{Name: deviceDB, ID: "dm-LVM-1"})
	configure("osd.3")
	if err := adoptable(t.Context(), l); err == nil {
		t.Error("an OSD without its database is adopted")
	}
	l.Daemon.Spec.Devices = l.Daemon.Spec.Devices[:1]
	taken := func() error { return nil }
	if err := takeOver(t.Context(), l, taken, taken); err != nil {
		t.Fatal(err)
	}
	configure("has no label, and osd.3 was made on it before")
}

// TestSameDevices has an OSD get other devices between its adoption and its hand-over.
func TestSameDevices(t *testing.T) {
	dir := t.TempDir()
	disk, db := loopDevice(t), loopDevice(t)
	l := &service.Local{Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}}}
	used := map[string]string{deviceBlock: disk}
	link := func(name, to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		if err := sameDevices(l, dir, used); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check("while looking which devices")
	link(deviceBlock, disk)
	check("")
	link(deviceDB, db)
	check("block.db of osd.3 is another device now, and was none")
	used[deviceDB] = disk
	check("block.db of osd.3 is another device now, and was " + disk)
	used[deviceDB] = db
	check("")
	if err := os.Remove(filepath.Join(dir, deviceDB)); err != nil {
		t.Fatal(err)
	}
	check("block.db of osd.3 is no device now, and was " + db)
}

// sealedBefore encrypts a device as ceph-volume does.
func sealedBefore(t *testing.T, path, key, version string) {
	t.Helper()
	cryptsetup(t, key, "--batch-mode", "--key-size", "512", "--type", version, "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "-", "luksFormat", path)
}

func cryptsetup(t *testing.T, key string, args ...string) {
	t.Helper()
	cmd := exec.Command("cryptsetup", args...)
	cmd.Stdin = strings.NewReader(key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cryptsetup %s: %v: %s", args[0], err, out)
	}
}

// adoptedSecret is an OSD on a device that somebody else has encrypted with a key.
func adoptedSecret(t *testing.T, path, id, cluster, uuid, key string) *service.Local {
	t.Helper()
	l := secretOSD(t, path, id, cluster, uuid, 0)
	l.Parameters[api.ParameterForeign], l.Keys[deviceBlock] = cluster, []byte(key)
	return l
}

func TestAdoptable_encrypted(t *testing.T) {
	key, wrong := strings.Repeat("k", 172), strings.Repeat("w", 172)
	for name, c := range map[string]struct{ version, key, owner, want string }{
		"LUKS 1":      {"luks1", key, "", "cryptsetup convert"},
		"another key": {"luks2", wrong, "", "does not open it"},
		"another OSD": {"luks2", key, other, "encrypted for something else"},
		"as it is":    {"luks2", key, "", ""},
		"cut off":     {"luks2", key, ours, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := loopDevice(t)
			sealedBefore(t, path, key, c.version)
			if c.owner != "" {
				cryptsetup(t, "", "config", "--label", "osd="+c.owner+" data", "--subsystem", "ceph_fsid="+fsid, path)
			}
			l := adoptedSecret(t, path, "7", fsid, ours, c.key)
			before := head(t, path)
			err := adoptable(t.Context(), l)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if !bytes.Equal(before, head(t, path)) {
				t.Error("looking has changed it")
			}
		})
	}
}

// An encrypted device with nothing on it, or that this kernel cannot open, is not made an OSD in the course of a hand-over.
func TestOSD_encryptedEmpty(t *testing.T) {
	path, key := loopDevice(t), strings.Repeat("k", 172)
	sealedBefore(t, path, key, "luks2")
	l := adoptedSecret(t, path, "7", fsid, ours, key)
	for range 2 {
		l.Devices[deviceBlock] = scan(t, path)
		err := OSD{}.ConfigureLocalService(t.Context(), l)
		if err == nil || !strings.Contains(err.Error(), "does not hold osd.7") && luks.Available() == nil || !strings.Contains(err.Error(), "taking over the encryption") && luks.Available() != nil {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(filepath.Join(l.Data, fileTaken)); err == nil || complete(filepath.Join(l.Data, directoryName)) {
			t.Error("it is taken over")
		}
		if have, err := luks.OwnerOf(path); luks.Available() != nil && (err != nil || have != (luks.Owner{})) {
			t.Errorf("a header that nobody can use is changed: %+v, %v", have, err)
		}
	}
	if err := (OSD{}).CloseDevices(t.Context(), l); err != nil {
		t.Error(err)
	}
}

// TestOSD_encryptedBefore takes over an OSD on a disk that ceph-volume has encrypted and opened, with all that needs dm-crypt: TestEncryption of test/e2e
// gives it a virtual machine's disk.
func TestOSD_encryptedBefore(t *testing.T) {
	path := os.Getenv(diskVariable)
	if path == "" {
		t.Skip("this has no disk of a kernel with dm-crypt: TestEncryption in test/e2e gives it one, and fails where it does not pass")
	}
	label, err := bluestore.ReadLabel(os.Getenv(labelVariable))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(os.Getenv(labelVariable))
	if err != nil {
		t.Fatal(err)
	}
	number, _ := label.OSDID()
	const before, key = "p2tHzU-mm3n-hTBV-R8g0-5pVQ-3cXn-5IVtWZ", "a key of the monitors' that has more than thirty-two characters"
	sealedBefore(t, path, key, "luks2")
	cryptsetup(t, key, "--key-file", "-", "--allow-discards", "luksOpen", path, before)
	l := adoptedSecret(t, path, strconv.Itoa(int(number)), label.ClusterFSID(), label.OSDUUID, key)
	configure := func() error {
		l.Devices[deviceBlock] = scan(t, path)
		return OSD{}.ConfigureLocalService(t.Context(), l)
	}
	if err := configure(); err == nil || !strings.Contains(err.Error(), "does not hold osd.") {
		t.Errorf("an empty one: %v", err)
	}
	if err := os.WriteFile("/dev/mapper/"+before, text, 0); err != nil {
		t.Fatal(err)
	}
	if have, err := luks.OwnerOf(path); err != nil || have != (luks.Owner{}) {
		t.Fatalf("a refusal has changed the header: %+v, %v", have, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	l.Devices[deviceBlock] = scan(t, path)
	if err := (OSD{}).ConfigureLocalService(canceled, l); err == nil {
		t.Error("it goes on after it was cut off")
	}
	cryptsetup(t, "", "config", "--label", "osd="+label.OSDUUID+" data", "--subsystem", "ceph_fsid="+label.ClusterFSID(), path) // as one that is cut off in the middle leaves it
	for range 2 {
		if err := configure(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat("/dev/mapper/" + before); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is open under its name of before: %v", err)
	}
	if out, err := exec.Command("cryptsetup", "luksDump", path).Output(); err != nil || !strings.Contains(string(out), "allow-discards") {
		t.Errorf("discards do not reach the disk any more: %v: %s", err, out)
	}
	if got, err := bluestore.ReadLabel(ownerOf(l, deviceBlock).Path()); err != nil || got.OSDUUID != label.OSDUUID {
		t.Errorf("%+v, %v", got, err)
	}
	if seen := scan(t, path); seen.Ceph == nil || seen.Ceph.OSDUUID != label.OSDUUID {
		t.Errorf("the inventory shows %+v", seen)
	}
	if err := (OSD{}).CloseDevices(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	cryptsetup(t, key, "--key-file", "-", "luksOpen", path, before) // as somebody does who goes back
	cryptsetup(t, "", "close", before)
}
