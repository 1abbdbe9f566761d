package csi

import (
	"crypto/rand"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// TestVolume goes through the life of a volume: it grows while it is written to, it outlives the
// driver on its node, and it moves to another node with its data.
func TestVolume(t *testing.T) {
	d := newDriver(t)
	n1, n2 := d.node("n1"), d.node("n2")
	v := d.create("pvc-1", 400*mib)
	d.must(v.publish("n1"), v.mount(n1))
	sum := v.fill("data", 40*mib)
	d.wantCode("publish to another node", v.publish("n2"), codes.FailedPrecondition)
	d.must(v.publish("n1"))
	d.wantCode("unpublish while it is mounted", v.unpublish("n1"), codes.FailedPrecondition)
	d.wantCode("delete while it is attached", v.delete(), codes.FailedPrecondition)

	stop := v.write("running")
	d.kill(d.nodes["n1"])
	n1 = d.node("n1")
	v.grow(n1, 800*mib)
	if slowest := stop(); slowest > time.Second {
		t.Errorf("a write took %v", slowest)
	}
	v.checkStats(n1, 700*mib)

	d.must(v.unmount(n1), v.unmount(n1), v.unpublish("n1"), v.unpublish("n1"))
	d.must(v.publish("n2"), v.mount(n2))
	if got := v.sum("data"); got != sum {
		t.Error("on another node the volume has other data")
	}
	d.must(v.unmount(n2), v.unpublish("n2"), v.delete(), v.delete())
	d.noImage(v.name)
}

// TestVolume_carrierIsKilled shows that a volume whose process has ended says so, and that it can
// be mounted again.
func TestVolume_carrierIsKilled(t *testing.T) {
	d := newDriver(t)
	n1 := d.node("n1")
	v := d.create("pvc-1", 400*mib)
	d.must(v.publish("n1"), v.mount(n1))
	sum := v.fill("data", 4*mib)
	if err := syscall.Kill(v.carrier(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !v.stats(n1).GetVolumeCondition().GetAbnormal(); {
		if time.Now().After(deadline) {
			t.Fatal("the volume's condition is good")
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
	d.wantCode("stage again", v.stage(n1), codes.Internal)
	d.must(v.unmount(n1), v.mount(n1))
	if got := v.sum("data"); got != sum {
		t.Error("the volume has other data")
	}
	d.must(v.unmount(n1), v.unpublish("n1"), v.delete())
	d.noImage(v.name)
}

// TestVolume_foreignData shows that what is not empty is never formatted.
func TestVolume_foreignData(t *testing.T) {
	d := newDriver(t)
	n1 := d.node("n1")
	foreign := make([]byte, 64*mib)
	copy(foreign[mib:], "somebody's own")
	if err := os.WriteFile(d.path("foreign"), foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	d.rbd("import", d.path("foreign"), poolName+"/foreign")
	v := d.create("foreign", 64*mib)
	d.must(v.publish("n1"))
	if err := v.stage(n1); err == nil {
		t.Error("an image with unknown data was mounted")
	}
	d.must(v.unmount(n1))
	d.rbd("export", poolName+"/foreign", d.path("exported"))
	if exported,
		err := os.ReadFile(d.path("exported")); err != nil || sha256.Sum256(exported) != sha256.Sum256(foreign) {
		t.Errorf("the image was written to: %v", err)
	}
	d.must(v.unpublish("n1"), v.delete())

	other := d.create("pvc-2", 400*mib)
	other.capability = as("ext4")
	d.must(other.publish("n1"), other.mount(n1))
	sum := other.fill("data", mib)
	d.must(other.unmount(n1))
	other.capability = as("xfs")
	if err := other.stage(n1); err == nil {
		t.Error("ext4 was mounted as XFS")
	}
	d.must(other.unmount(n1))
	other.capability = as("ext4")
	d.must(other.mount(n1))
	if got := other.sum("data"); got != sum {
		t.Error("the volume has other data")
	}
	d.must(other.unmount(n1), other.unpublish("n1"), other.delete())
}

// TestVolume_manyAtOnce has volumes be made, used and removed side by side.
func TestVolume_manyAtOnce(t *testing.T) {
	d := newDriver(t)
	n1 := d.node("n1")
	begun := time.Now()
	var all sync.WaitGroup
	names := strings.Fields("a b c d e f g h")
	for _, name := range names {
		all.Go(func() {
			v := d.create("pvc-"+name, 320*mib)
			d.must(v.publish("n1"), v.mount(n1))
			sum := v.fill("data", mib)
			d.must(v.unmount(n1), v.mount(n1))
			if got := v.sum("data"); got != sum {
				t.Errorf("volume %s has other data", name)
			}
			d.must(v.unmount(n1), v.unpublish("n1"), v.delete())
		})
	}
	all.Wait()
	t.Logf("%d volumes took %v", len(names), time.Since(begun))
	for _, name := range names {
		d.noImage("pvc-" + name)
	}
}

// fill writes random data to a file, and returns its checksum.
func (v *volume) fill(name string, bytes int) [32]byte {
	v.t.Helper()
	data := make([]byte, bytes)
	_, _ = rand.Read(data) // it never fails
	f, err := os.Create(filepath.Join(v.target(), name))
	v.must(err)
	defer f.Close()
	_, err = f.Write(data)
	v.must(err, f.Sync())
	return sha256.Sum256(data)
}

func (v *volume) sum(name string) [32]byte {
	v.t.Helper()
	data, err := os.ReadFile(filepath.Join(v.target(), name))
	v.must(err)
	return sha256.Sum256(data)
}

// write writes to a file until stop is called, which says how long the slowest write took.
func (v *volume) write(name string) (stop func() time.Duration) {
	v.t.Helper()
	f, err := os.Create(filepath.Join(v.target(), name))
	v.must(err)
	end, slowest := make(chan struct{}), make(chan time.Duration)
	go func() {
		defer f.Close()
		var longest time.Duration
		for block := make([]byte, 64<<10); ; {
			select {
			case <-end:
				slowest <- longest
				return
			default:
			}
			begun := time.Now()
			if _, err := f.WriteAt(block, 0); err != nil {
				v.t.Errorf("writing: %v", err)
			}
			if err := f.Sync(); err != nil {
				v.t.Errorf("writing: %v", err)
			}
			longest = max(longest, time.Since(begun))
		}
	}()
	return func() time.Duration { close(end); return <-slowest }
}

// grow makes a mounted volume larger.
func (v *volume) grow(n csi.NodeClient, bytes int64) {
	v.t.Helper()
	r, err := v.controller.ControllerExpandVolume(v.within(), &csi.ControllerExpandVolumeRequest{
		VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, Secrets: v.provisioner,
	})
	v.must(err)
	if r.GetCapacityBytes() != bytes || !r.GetNodeExpansionRequired() {
		v.t.Errorf("the controller grew it to %v", r)
	}
	for range 2 {
		_, err = n.NodeExpandVolume(v.within(), &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging(),
			CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		})
		v.must(err)
	}
}

func (v *volume) stats(n csi.NodeClient) *csi.NodeGetVolumeStatsResponse {
	v.t.Helper()
	r, err := n.NodeGetVolumeStats(v.within(), &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target()})
	v.must(err)
	return r
}

// checkStats compares what the driver says of a volume with what the kernel says, and its size with
// the least it has to be.
func (v *volume) checkStats(n csi.NodeClient, least int64) {
	v.t.Helper()
	r := v.stats(n)
	var s unix.Statfs_t
	v.must(unix.Statfs(v.target(), &s))
	total := r.GetUsage()[0].GetTotal()
	if total != int64(s.Blocks)*s.Bsize || total < least || r.GetVolumeCondition().GetAbnormal() {
		v.t.Errorf("got %v, want at least %d bytes", r, least)
	}
}

// carrier is the number of the process that carries the volume.
func (v *volume) carrier() int {
	v.t.Helper()
	pids, err := exec.CommandContext(v.t.Context(), "pgrep", "-f",
		"^[^ ]*("+strings.Join(carriers, "|")+") .*/"+backend.Dir(v.id)+"/").Output()
	v.must(err)
	var pid int
	for _, c := range strings.Fields(string(pids))[0] {
		pid = pid*10 + int(c-'0')
	}
	return pid
}

// rbd runs Ceph's own program.
func (d *driver) rbd(args ...string) {
	d.t.Helper()
	all := append([]string{
		"--mon-host", d.ceph.Config.MonHost, "--id", "admin", "--key", d.ceph.Config.Key,
		"--no-progress",
	}, args...)
	if out, err := exec.CommandContext(d.t.Context(), "rbd", all...).CombinedOutput(); err != nil {
		d.t.Fatalf("rbd %v: %v\n%s", args, err, out)
	}
}
