package csi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-storage/holdfast/csi/cephfs"
)

const fsName = "home"

// newFSDriver starts a Ceph with a filesystem, and the controller part.
func newFSDriver(t *testing.T) *driver {
	t.Helper()
	d := newDriverOf(t)
	d.ceph.Filesystem(fsName)
	d.provisioner = d.secret("csi-provisioner", "mon", "allow r", "mgr", "allow module volumes rw")
	d.user = d.secret("csi-node", "mon", "allow r fsname="+fsName,
		"mds", "allow rw fsname="+fsName+" path="+cephfs.GroupPath, "osd", "allow rw tag cephfs data="+fsName)
	d.parameters = map[string]string{"backend": cephfs.Name, cephfs.ParameterFilesystem: fsName}
	return d
}

// everywhere is the access mode of volumes that all nodes write to.
var everywhere = &csi.VolumeCapability{
	AccessType: writer.AccessType,
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
}

func TestCephFS_sanity(t *testing.T) { newFSDriver(t).sanity() }

// TestCephFS goes through the life of a volume on two nodes: what one writes, the other reads. It
// has its size, grows while it is written to, and outlives the driver.
func TestCephFS(t *testing.T) {
	d := newFSDriver(t)
	n1, n2 := d.node("n1"), d.node("n2")
	v := d.create("pvc-1", 100*mib)
	v.capability = everywhere
	other := *v
	other.name = "other" // its paths
	d.must(v.publish("n1"), v.mount(n1), other.publish("n2"), other.mount(n2))
	sum := v.fill("data", 40*mib)
	if got := other.sum("data"); got != sum {
		t.Error("the other node reads other data")
	}
	v.checkStats(n1, 100*mib)
	v.isFull()
	d.wantCode("delete while it is attached", v.delete(), codes.FailedPrecondition)

	stop := other.write("running")
	d.kill(d.nodes["n2"])
	n2 = d.node("n2")
	v.grow(n1, 200*mib)
	if slowest := stop(); slowest > time.Second {
		t.Errorf("a write took %v", slowest)
	}
	d.awaitSize(&other, n2, 200*mib)
	sum = v.fill("data", 120*mib)

	d.must(v.unmount(n1), v.unmount(n1), v.unpublish("n1"), v.unpublish("n1"))
	if got := other.sum("data"); got != sum {
		t.Error("the other node reads other data after the first has unmounted")
	}
	d.must(other.unmount(n2), other.unpublish("n2"), v.delete(), v.delete())
	d.noSubvolume()
}

// isFull fails unless a write beyond the volume's size is refused. A client may overshoot a bit.
func (v *volume) isFull() {
	v.t.Helper()
	path := filepath.Join(v.target(), "much")
	f, err := os.Create(path)
	v.must(err)
	for block, n := make([]byte, mib), 0; err == nil && n < 400; n++ {
		if _, err = f.Write(block); err == nil {
			err = f.Sync()
		}
	}
	if !errors.Is(err, unix.EDQUOT) {
		v.t.Errorf("writing beyond the size of the volume: %v", err)
	}
	_ = f.Close()
	v.must(os.Remove(path))
}

// awaitSize waits until a mounted volume shows a size.
func (d *driver) awaitSize(v *volume, n csi.NodeClient, bytes int64) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); v.stats(n).GetUsage()[0].GetTotal() != bytes; {
		if time.Now().After(end) {
			d.t.Fatalf("got %v, want %d bytes", v.stats(n), bytes)
		}
		time.Sleep(50 * time.Millisecond) // between two looks at the condition
	}
}

// noSubvolume fails unless Ceph has nothing of any volume in a minute, neither in the trash.
func (d *driver) noSubvolume() {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var names []any
		d.mgr(&names, "fs subvolume ls", map[string]any{"group_name": cephfs.Group})
		var trash struct {
			Pending int `json:"pending_subvolume_deletions"`
		}
		d.mgr(&trash, "fs volume info", nil)
		if len(names) == 0 && trash.Pending == 0 {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("left: %v, and %d in the trash", names, trash.Pending)
		}
	}
}

// mgr sends a command about the filesystem to the manager.
func (d *driver) mgr(answer any, prefix string, args map[string]any) {
	d.t.Helper()
	command := map[string]any{"prefix": prefix, "vol_name": fsName, "format": "json"}
	for k, v := range args {
		command[k] = v
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	out, err := d.ceph.Client().Mgr(ctx, command, nil)
	if err == nil && answer != nil {
		err = json.Unmarshal(out, answer)
	}
	if err != nil {
		d.t.Fatalf("%s: %v", prefix, err)
	}
}

// TestCephFS_unsynced shows that what a pod wrote last, and did not sync, is there after the volume was
// unmounted, also where an OSD hangs for longer than a process gets
// to stop.
func TestCephFS_unsynced(t *testing.T) {
	d := newFSDriver(t)
	n1 := d.node("n1")
	v := d.create("pvc-1", 400*mib)
	d.must(v.publish("n1"), v.mount(n1))
	data := make([]byte, 50*mib)
	_, _ = rand.Read(data) // it never fails
	d.must(d.ceph.OSD().Signal(syscall.SIGSTOP))
	time.AfterFunc(25*time.Second, func() { _ = d.ceph.OSD().Signal(syscall.SIGCONT) })
	d.must(os.WriteFile(filepath.Join(v.target(), "data"), data, 0o600))
	d.must(v.unmount(n1), v.mount(n1))
	got, err := os.ReadFile(filepath.Join(v.target(), "data"))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("what was written last is lost: %d bytes, %v", len(got), err)
	}
	d.must(v.unmount(n1), v.unpublish("n1"), v.delete())
	d.noSubvolume()
}

func TestCephFS_nodeIsKilledAtEachStep(t *testing.T) {
	d := newFSDriver(t)
	d.killedAtEach(20)
	d.noSubvolume()
}

// TestCephFS_permissions shows that who uses a volume may do what their groups may, and that a volume
// for readers is for readers.
func TestCephFS_permissions(t *testing.T) {
	d := newFSDriver(t)
	n1 := d.node("n1")
	v := d.create("pvc-1", 100*mib)
	v.capability = everywhere
	d.must(v.publish("n1"), v.mount(n1))
	v.fill("data", mib)
	d.must(os.Chown(v.target(), 0, 4711), os.Chmod(v.target(), 0o770), os.Chmod(d.dir, 0o755))
	as := func(groups ...uint32) error {
		cmd := exec.CommandContext(t.Context(), "touch", filepath.Join(v.target(), "file"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000, Groups: groups}}
		return cmd.Run()
	}
	if err := as(4711); err != nil {
		t.Errorf("a member of the group: %v", err)
	}
	if err := as(4712); err == nil {
		t.Error("somebody who is not of the group may write")
	}
	d.must(v.unmount(n1), v.unpublish("n1"))

	v.capability = &csi.VolumeCapability{AccessType: writer.AccessType, AccessMode: &csi.VolumeCapability_AccessMode{
		Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
	}}
	d.must(v.publish("n1"), v.mount(n1))
	if _, err := os.ReadFile(filepath.Join(v.target(), "data")); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if err := os.Remove(filepath.Join(v.target(), "data")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a reader removes a file: %v", err)
	}
	d.must(v.unmount(n1), v.unpublish("n1"), v.delete())
	d.noSubvolume()
}
