package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/cephfs"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// TestCephFS_carrierIsKilled shows that a volume whose ceph-fuse was killed says so, and that it can be
// mounted again. Ceph takes a minute to see that the client is gone which had the file.
func TestCephFS_carrierIsKilled(t *testing.T) {
	d := newFSDriver(t)
	n1 := d.node("n1")
	v := d.create("pvc-1", 400*mib)
	d.must(v.publish("n1"), v.mount(n1))
	sum := v.fill("data", 4*mib)
	d.must(syscall.Kill(v.carrier(), syscall.SIGKILL))
	for deadline := time.Now().Add(time.Minute); !v.stats(n1).GetVolumeCondition().GetAbnormal(); {
		if time.Now().After(deadline) {
			t.Fatal("the volume's condition is good")
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
	d.wantCode("stage again", v.stage(n1), codes.Internal)
	begun := time.Now()
	d.must(v.unmount(n1), v.mount(n1))
	if got := v.sum("data"); got != sum {
		t.Error("the volume has other data")
	}
	v.fill("data", 4*mib)
	t.Logf("read and written again after %v", time.Since(begun))
	d.must(v.unmount(n1), v.unpublish("n1"), v.delete())
	d.noSubvolume()
}

// TestCephFS_badInput shows what is refused, and what a node's key may not do.
func TestCephFS_badInput(t *testing.T) {
	d := newFSDriver(t)
	n1 := d.node("n1")
	create := func(name string, change func(*csi.CreateVolumeRequest)) error {
		r := &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: mib}, Secrets: d.provisioner,
			VolumeCapabilities: []*csi.VolumeCapability{writer}, Parameters: d.parameters,
		}
		change(r)
		_, err := d.controller.CreateVolume(d.within(), r)
		return err
	}
	d.wantCode("a block device", create("a", func(r *csi.CreateVolumeRequest) {
		r.VolumeCapabilities = []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Block{},
			AccessMode: writer.AccessMode,
		}}
	}), codes.InvalidArgument)
	err := create("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 1 << 50 })
	d.wantCode("larger than the pool", err, codes.ResourceExhausted)
	t.Log(err)
	err = create("a", func(r *csi.CreateVolumeRequest) {
		r.Parameters = map[string]string{"backend": cephfs.Name, cephfs.ParameterFilesystem: "none"}
	})
	d.wantCode("no such filesystem", err, codes.InvalidArgument)

	d.halfMade("pvc-half")
	v := d.create("pvc-half", 1)
	d.must(v.publish("n1"))
	d.wantCode("publish to another node", v.publish("n2"), codes.FailedPrecondition)
	d.must(v.publish("n1"))
	v.capability = as("xfs")
	d.wantCode("another filesystem", v.stage(n1), codes.InvalidArgument)
	v.capability = writer
	d.must(v.unmount(n1), v.mount(n1))
	v.fill("data", mib)
	v.checkKeys()
	if err := unix.Setxattr(v.target(), "ceph.quota.max_bytes", []byte("1099511627776"), 0); err == nil {
		t.Error("the node's key changes the quota")
	}
	d.must(v.unmount(n1), v.unpublish("n1"), v.delete())

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := rados.Dial(rados.Config{
		FSID: d.ceph.Config.FSID, MonHost: d.ceph.Config.MonHost,
		Entity: "client." + d.user[backend.SecretUser], Key: d.user[backend.SecretKey],
	})
	defer node.Close()
	_, err = node.Mgr(ctx, map[string]any{"prefix": "fs subvolume ls", "vol_name": fsName}, nil)
	if !errors.Is(err, syscall.EACCES) {
		t.Errorf("the node's key asks the manager: %v", err)
	}
	if _, err := d.mountAll(d.user[backend.SecretUser], d.user[backend.SecretKey]); err == nil {
		t.Error("the node's key mounts the whole filesystem")
	}
	d.noSubvolume()
}

// halfMade leaves what a manager leaves that is killed while it makes a subvolume: directories without
// a quota.
func (d *driver) halfMade(name string) {
	d.t.Helper()
	d.mgr(nil, "fs subvolumegroup create", map[string]any{"group_name": cephfs.Group})
	dir, err := d.mountAll("admin", d.ceph.Config.Key)
	d.must(err, os.MkdirAll(filepath.Join(dir, cephfs.GroupPath, name, "0e4e6bb5-a4c6-4c3b-8f23-6b6a4c1ea4b9"), 0o755),
		syscall.Unmount(dir, 0))
}

// mountAll mounts the root of the filesystem.
func (d *driver) mountAll(user, key string) (dir string, err error) {
	d.t.Helper()
	dir = d.path("all-" + user)
	keyring := d.path("keyring-" + user)
	d.must(os.MkdirAll(dir, 0o700), os.WriteFile(keyring, []byte("[client."+user+"]\n\tkey = "+key+"\n"), 0o600))
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	return dir, exec.CommandContext(ctx, "ceph-fuse", "--mon-host", d.ceph.Config.MonHost, "--keyring", keyring,
		"-n", "client."+user, "--client_fs", fsName, dir).Run()
}

// checkKeys fails unless the key of a mounted volume is in files of root alone, and in no argument.
func (v *volume) checkKeys() {
	v.t.Helper()
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", v.carrier()))
	v.must(err)
	if strings.Contains(string(args), v.user[backend.SecretKey]) {
		v.t.Errorf("the key is in the arguments: %s", args)
	}
	files, err := filepath.Glob(v.path("dir-n1/" + backend.Dir(v.id) + "/*"))
	v.must(err)
	with := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), v.user[backend.SecretKey]) {
			continue
		}
		with++
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			v.t.Errorf("%s with the key has the mode %v", path, info.Mode())
		}
	}
	if with == 0 {
		v.t.Errorf("no file has the key: %v", files)
	}
}

// TestCephFS_noAnswer shows that calls end in time while the monitors or the MDS do not answer, and
// succeed when they do again.
func TestCephFS_noAnswer(t *testing.T) {
	d := newFSDriver(t)
	n1 := d.node("n1")
	v := d.create("pvc-1", 100*mib)
	d.must(v.publish("n1"))
	for what, process := range map[string]*os.Process{"monitors": d.ceph.Monitor(), "MDS": d.ceph.MDS()} {
		d.must(process.Signal(syscall.SIGSTOP))
		d.hurried = 4 * time.Second
		begun := time.Now()
		d.wantNoAnswer(what+": create", d.tryCreate("pvc-2"))
		d.wantNoAnswer(what+": stage", v.stage(n1))
		d.wantNoAnswer(what+": delete", v.delete())
		d.wantNoAnswer(what+": publish", v.publish("n2"))
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s: four calls took %v", what, took)
		}
		d.hurried = 0
		d.must(process.Signal(syscall.SIGCONT))
		for end := time.Now().Add(time.Minute); v.publish("n1") != nil && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond) // between two looks at the condition
		}
		d.must(v.publish("n1"), v.unmount(n1), v.mount(n1))
		v.fill("data", mib)
		d.must(v.unmount(n1))
	}
	d.must(v.unpublish("n1"), v.delete())
	other := d.create("pvc-2", 100*mib)
	d.must(other.delete())
	d.noSubvolume()
}

func (d *driver) tryCreate(name string) error {
	_, err := d.controller.CreateVolume(d.within(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 100 * mib}, Secrets: d.provisioner,
		VolumeCapabilities: []*csi.VolumeCapability{writer}, Parameters: d.parameters,
	})
	return err
}

// wantNoAnswer fails unless an error says that the call can be made again.
func (d *driver) wantNoAnswer(what string, err error) {
	d.t.Helper()
	code := status.Code(err)
	if code != codes.Unavailable && code != codes.DeadlineExceeded && code != codes.Aborted {
		d.t.Errorf("%s: got %v", what, err)
	}
	d.t.Logf("%s: %v", what, err)
}
