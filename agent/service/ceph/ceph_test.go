package ceph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.uber.org/goleak"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These tests run the real programs on a loop device of their own, and need root.

const (
	fsid  = "11111111-2222-3333-4444-555555555555"
	ours  = "99999999-2222-3333-4444-555555555555"
	other = "88888888-2222-3333-4444-555555555555"
)

// The settings make an OSD in 0.3 s in place of 2 s; none changes what is written where.
const conf = `[global]
fsid = ` + fsid + `
mon_host = [v2:127.0.0.1:33000,v1:127.0.0.1:33001]
bdev_aio_poll_ms = 5
bluestore_fsck_on_mkfs = false
[mon]
log_file =
run_dir = %[1]s
admin_socket = %[1]s/ceph.asok
[osd]
log_file =
run_dir = %[1]s
admin_socket = %[1]s/ceph.asok
keyring = %[1]s/keyring
`

// key is a cephx key that opens nothing.
const key = "AQBTvgFpAAAAABAAcPpDmTd2Zuqbba5rHDsBIw=="

// loopDevice makes a sparse disk of 4 GiB.
func loopDevice(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "holdfast-agent-test.img")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(4<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	path := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		_ = exec.Command("partx", "--delete", path).Run() // else whoever has the loop device next has what is left of a test that failed
		if out, err := exec.Command("losetup", "-d", path).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	return path
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

func local(t *testing.T, kind, id string, params map[string]string) *service.Local {
	t.Helper()
	l := servicetest.Dirs(t)
	l.Daemon.ObjectMeta, l.Parameters = metav1.ObjectMeta{Namespace: "default", Name: kind + "-" + id}, map[string]string{paramFSID: fsid}
	l.Daemon.Spec = api.DaemonSpec{Type: kind, ID: id, OnRemoval: api.DeletionWipe}
	for k, v := range params {
		l.Parameters[k] = v
	}
	keyring := fmt.Sprintf("[mon.]\n\tkey = %[1]s\n\tcaps mon = \"allow *\"\n[osd.%[2]s]\n\tkey = %[1]s\n", key, id)
	for name, text := range map[string]string{fileConf: fmt.Sprintf(conf, l.Data), fileKeyring: keyring} {
		if err := os.WriteFile(filepath.Join(l.Data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// osdOn is an OSD on a device as it is now.
func osdOn(t *testing.T, path, id, uuid string) *service.Local {
	l := local(t, "ceph-osd", id, map[string]string{paramOSDUUID: uuid})
	l.Devices = map[string]api.Device{deviceBlock: scan(t, path)}
	return l
}

func TestMon_makesAStoreOnce(t *testing.T) {
	l := local(t, "ceph-mon", "a", map[string]string{paramMonmap: "a=[v2:127.0.0.1:33000,v1:127.0.0.1:33001] b=[v2:127.0.0.2:33000,v1:127.0.0.2:33001]"})
	m := Mon{}
	if err := m.Initialize(t.Context(), &service.Host{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	// What is left of a try that was cut off must not get in the way.
	if err := os.MkdirAll(filepath.Join(l.Data, "store.new", "rubbish"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(l.Data, directoryName, "kv_backend")
	first, err := os.Stat(marker)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(marker)
	if err != nil || !os.SameFile(first, again) {
		t.Errorf("the store was made a second time (%v)", err)
	}
}

// A store that is lost after the mons had a quorum is not made anew before the others are a quorum; then it is made to join them, and
// what is left of it is kept.
func TestMon_lostStore(t *testing.T) {
	const monmap = "a=[v2:127.0.0.1:33000,v1:127.0.0.1:33001] b=[v2:127.0.0.2:33000,v1:127.0.0.2:33001]"
	l, m := local(t, "ceph-mon", "a", map[string]string{paramMonmap: monmap, paramFounded: "true"}), Mon{}
	store := filepath.Join(l.Data, directoryName)
	if err := os.MkdirAll(filepath.Join(store, "store.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if m.Kept(l) {
		t.Error("an empty directory is taken for a store")
	}
	if err := m.ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "recover-mons") || m.Kept(l) {
		t.Errorf("while the others are no quorum: %v", err)
	}
	l.Parameters[paramRejoin] = "true"
	if err := m.ConfigureLocalService(t.Context(), l); err != nil || !m.Kept(l) {
		t.Fatalf("%v, the store is there: %v", err, m.Kept(l))
	}
	if left, _ := filepath.Glob(store + ".lost-*/store.db"); len(left) != 1 {
		t.Errorf("what was left of the store: %q", left)
	}
	out, err := exec.CommandContext(t.Context(), "monmaptool", "--print", filepath.Join(l.Data, "monmap")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "mon.b") || strings.Contains(string(out), "mon.a") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMon_failureSaysWhy(t *testing.T) {
	l := local(t, "ceph-mon", "a", map[string]string{paramMonmap: "a=[v2:127.0.0.1:33000]"})
	if err := os.Remove(filepath.Join(l.Data, fileKeyring)); err != nil {
		t.Fatal(err)
	}
	err := Mon{}.ConfigureLocalService(t.Context(), l)
	if err == nil || !strings.Contains(err.Error(), "keyring") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.Data, directoryName)); !os.IsNotExist(err) {
		t.Errorf("a store is there: %v", err)
	}
}

// The life of an OSD on a device: made, found again, with its directory lost, refused to others, wiped, free again.
func TestOSD_life(t *testing.T) {
	path := loopDevice(t)
	o := OSD{}
	l := osdOn(t, path, "7", ours)
	if err := o.ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	label, err := bluestore.ReadLabel(path)
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := label.OSDID(); id != 7 || label.OSDUUID != ours || label.ClusterFSID() != fsid || !label.MkfsDone() {
		t.Errorf("label %+v", label)
	}
	l.Devices[deviceBlock] = scan(t, path)
	if err := o.ConfigureLocalService(t.Context(), l); err != nil {
		t.Errorf("a second time: %v", err)
	}
	lost := osdOn(t, path, "7", ours)
	if err := o.ConfigureLocalService(t.Context(), lost); err != nil {
		t.Errorf("with its directory lost: %v", err)
	}
	if !complete(filepath.Join(lost.Data, directoryName)) {
		t.Error("the directory was not restored")
	}
	before := head(t, path)
	for _, c := range []struct{ name, id, uuid string }{{"another OSD", "8", other}, {"the same uuid with another number", "8", ours}} {
		stranger := osdOn(t, path, c.id, c.uuid)
		if err := o.ConfigureLocalService(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "not touched") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	foreign := osdOn(t, path, "8", other)
	if err := o.DestroyLocalService(t.Context(), foreign); err != nil {
		t.Errorf("wipe of a device that holds another OSD: %v", err)
	}
	if !bytes.Equal(before, head(t, path)) {
		t.Error("the device was written to")
	}
	l.Daemon.Spec.OnRemoval = api.DeletionRetain
	if err := o.DestroyLocalService(t.Context(), l); err != nil || !bytes.Equal(before, head(t, path)) {
		t.Errorf("retain touched the device (%v)", err)
	}
	l.Daemon.Spec.OnRemoval = api.DeletionWipe
	for range 2 {
		if err := o.DestroyLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if d := scan(t, path); d.Availability != api.DeviceAvailable {
		t.Errorf("after the wipe the device is not free: %v", d.Reasons)
	}
	l.Devices[deviceBlock] = scan(t, path)
	if err := o.ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "was made on it before") {
		t.Errorf("an empty disk in the place of the OSD's own: %v", err)
	}
}

func head(t *testing.T, path string) []byte {
	t.Helper()
	return begin(t, path, 64<<10)
}

// begin is what a device begins with.
func begin(t *testing.T, path string, size int64) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOSD_refusesWhatIsNotEmpty(t *testing.T) {
	for name, spoil := range map[string][]string{
		"file system":     {"mkfs.ext4", "-q", "-F"},
		"swap":            {"mkswap"},
		"partition table": {"sh", "-c", `echo 'label: gpt' | sfdisk -q "$0"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := loopDevice(t)
			if out, err := exec.Command(spoil[0], append(spoil[1:], path)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := head(t, path)
			err := OSD{}.ConfigureLocalService(t.Context(), osdOn(t, path, "7", ours))
			if err == nil || !strings.Contains(err.Error(), "not touched") {
				t.Errorf("error %v", err)
			}
			if !bytes.Equal(before, head(t, path)) {
				t.Error("the device was written to")
			}
		})
	}
}

// mkfs is killed at many points, and each time it is brought to its end by the next try.
func TestOSD_mkfsCutOff(t *testing.T) {
	path := loopDevice(t)
	cut := 0
	for _, ms := range []int{5, 20, 40, 60, 80, 100, 130, 160, 200} {
		l := osdOn(t, path, "7", ours)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
		if err := (OSD{}).ConfigureLocalService(ctx, l); err != nil {
			cut++
		}
		cancel()
		l.Devices[deviceBlock] = scan(t, path)
		if err := (OSD{}).ConfigureLocalService(t.Context(), l); err != nil {
			t.Fatalf("cut off after %v ms, then: %v", ms, err)
		}
		label, err := bluestore.ReadLabel(path)
		if err != nil || !label.MkfsDone() || label.OSDUUID != ours {
			t.Fatalf("cut off after %v ms: label %+v, %v", ms, label, err)
		}
		if err := (OSD{}).DestroyLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if cut == 0 {
		t.Error("mkfs was never cut off")
	}
}

func TestWipe_copiesOfTheLabel(t *testing.T) {
	path := loopDevice(t)
	l := osdOn(t, path, "7", ours)
	if err := (OSD{}).ConfigureLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(head(t, path)[:bluestore.LabelSize], 1<<30); err != nil {
		t.Fatal(err)
	}
	for at := int64(512 << 20); at < 2<<30; at += 1 << 20 { // as of an OSD that is full
		if _, err := f.WriteAt([]byte("data of somebody"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := (OSD{}).DestroyLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if d := scan(t, path); d.Availability != api.DeviceAvailable {
		t.Errorf("not free: %v", d.Reasons)
	}
}

func TestInitialize_missing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, a := range Agents() {
		err := a.Initialize(t.Context(), &service.Host{})
		pkg := a.Name()
		if pkg == (RGW{}).Name() {
			pkg = "radosgw"
		}
		if pkg == (RBDMirror{}).Name() {
			pkg = "rbd-mirror"
		}
		if err == nil || !strings.Contains(err.Error(), "apt-get install "+pkg) {
			t.Errorf("%s: %v", a.Name(), err)
		}
	}
}

func TestVersion(t *testing.T) {
	v, err := OSD{}.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := strings.Cut(v, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 16 {
		t.Errorf("version %q", v)
	}
	if _, err := parseVersion("bash: ceph-osd: not found"); err == nil {
		t.Error("rubbish was taken for a version")
	}
}

// A program is asked for its release again when its file is another one, and not before.
func TestVersion_askedOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	program, asked := filepath.Join(dir, "ceph-mds"), filepath.Join(dir, "asked")
	install := func(release string) {
		text := "#!/bin/sh\necho x >>" + asked + "\necho 'ceph version " + release + " (abc) pacific (stable)'\n"
		if err := os.WriteFile(program+".new", []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	for i, release := range []string{"16.2.15", "16.2.16"} {
		install(release)
		for range 3 {
			if got, err := (MDS{}).Version(t.Context()); err != nil || got != release {
				t.Errorf("%s, %v", got, err)
			}
		}
		if text, _ := os.ReadFile(asked); len(text) != 2*(i+1) {
			t.Errorf("asked %d times for %d programs", len(text)/2, i+1)
		}
	}
}
