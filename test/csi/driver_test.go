package csi

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
	"github.com/holdfast-storage/holdfast/test/smallceph"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// callTimeout bounds each call.
const callTimeout = 90 * time.Second

const (
	poolName = "volumes"
	mib      = 1 << 20
)

// driver is the driver with a Ceph behind it.
type driver struct {
	t    *testing.T
	dir  string // short: a socket's path may have 108 bytes
	ceph *smallceph.Cluster
	pool *rbd.Pool

	provisioner, user map[string]string // Secrets
	parameters        map[string]string // of the class

	controller csi.ControllerClient
	nodes      map[string]*exec.Cmd
	// hurried, when not zero, bounds each call.
	hurried time.Duration
	// alive, when not nil, ends the calls to node parts as well.
	alive context.Context
}

// newDriver starts a Ceph with a pool, and the controller part.
func newDriver(t *testing.T) *driver {
	t.Helper()
	d := newDriverOf(t)
	number := d.ceph.Pool(poolName)
	d.pool = rbd.In(d.ceph.Client(), number)
	d.provisioner = d.secret("csi-provisioner", "mon", "profile rbd", "mgr", "allow rw", "osd",
		"profile rbd pool="+poolName)
	d.user = d.secret("csi-node", "mon", "profile rbd", "osd", "profile rbd pool="+poolName)
	d.parameters = map[string]string{"pool": poolName}
	return d
}

// newDriverOf starts an empty Ceph and the controller part.
func newDriverOf(t *testing.T) *driver {
	t.Helper()
	tier.Full(t)
	if os.Getuid() != 0 {
		t.Fatal("mounting needs root")
	}
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, dir: dir, ceph: smallceph.Start(t), nodes: map[string]*exec.Cmd{}}
	d.run("controller", "--endpoint", d.path("controller"), "--nodes", "n1,n2")
	d.controller = csi.NewControllerClient(d.dial("controller"))
	t.Cleanup(d.checkNothingLeft)
	return d
}

// secret is what the Secret of a class has for an entity.
func (d *driver) secret(user string, caps ...string) map[string]string {
	return map[string]string{
		backend.SecretCluster: d.ceph.Config.FSID, backend.SecretMons: d.ceph.Config.MonHost,
		backend.SecretUser: user, backend.SecretKey: d.ceph.Key("client."+user, caps...),
	}
}

// node starts the node part of a node, or starts it again.
func (d *driver) node(name string) csi.NodeClient {
	d.t.Helper()
	d.nodes[name] = d.run("node", "--endpoint", d.path(name), "--node", name, "--dir", d.path("dir-"+name),
		"--registration-dir", d.path("reg-"+name))
	return csi.NewNodeClient(d.dial(name))
}

// run runs a part of the driver until the test ends.
func (d *driver) run(args ...string) *exec.Cmd {
	d.t.Helper()
	log, err := os.OpenFile(d.path("log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), commandEnv+"="+strings.Join(append([]string{"csi"}, args...), "\n"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { d.kill(cmd) })
	return cmd
}

func (d *driver) kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (d *driver) dial(socket string) *grpc.ClientConn {
	d.t.Helper()
	conn, err := grpc.NewClient("unix://"+d.path(socket), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (d *driver) path(name string) string { return filepath.Join(d.dir, name) }

// checkNothingLeft fails if there is anything of a volume on this machine or in Ceph, and removes it.
func (d *driver) checkNothingLeft() {
	if log, err := os.ReadFile(d.path("log")); err == nil && d.t.Failed() {
		d.t.Logf("the driver said:\n%s", log)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, d.dir) {
			d.t.Errorf("a mount is left: %s", line)
			_ = syscall.Unmount(strings.Fields(line)[1], syscall.MNT_DETACH)
		}
	}
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range backing {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), d.dir) {
			d.t.Errorf("%s is left: %s", path, text)
			_ = exec.Command("losetup", "-d", "/dev/"+strings.Split(path,
				"/")[3]).Run()
		}
	}
	for _, pattern := range []string{"dir-*/processes/*", "dir-*/????????????????"} {
		if left, _ := filepath.Glob(d.path(pattern)); len(left) > 0 {
			d.t.Errorf("left: %v", left)
		}
	}
	d.killCarriers()
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Error(err)
	}
}

// carriers are the programs that carry volumes.
var carriers = []string{"qemu-storage-daemon", "ceph-fuse"}

// killCarriers ends what a test that failed has left.
func (d *driver) killCarriers() {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		text, err := os.ReadFile(path)
		program, _, _ := strings.Cut(string(text), "\x00")
		if err == nil && slices.Contains(carriers, program) && strings.Contains(string(text), d.dir) {
			d.t.Errorf("a process is left: %s", strings.ReplaceAll(string(text), "\x00", " "))
			_ = exec.Command("kill", "-9", strings.Split(path, "/")[2]).Run()
		}
	}
}

// noImage fails if Ceph has anything of a volume in a minute.
func (d *driver) noImage(name string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	if _, err := d.pool.Size(ctx, name); !rbd.IsMissing(err) {
		d.t.Errorf("image %s is left: %v", name, err)
	}
	for {
		trash, err := d.pool.Trash(ctx)
		if err != nil {
			d.t.Fatalf("the trash has %v: %v", trash, err)
		}
		if len(trash) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond) // between two looks at the condition
	}
}

var writer = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func as(fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		AccessMode: writer.AccessMode,
	}
}

// volume is one that a test has made, with the calls that Kubernetes does for a pod.
type volume struct {
	*driver
	id         string
	name       string
	capability *csi.VolumeCapability
	attachment map[string]string
}

func (d *driver) create(name string, bytes int64) *volume {
	d.t.Helper()
	r, err := d.controller.CreateVolume(d.within(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		VolumeCapabilities: []*csi.VolumeCapability{writer},
		Parameters:         d.parameters, Secrets: d.provisioner,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return &volume{driver: d, id: r.GetVolume().GetVolumeId(), name: name, capability: writer}
}

func (d *driver) within() context.Context {
	parent := d.t.Context()
	if d.alive != nil {
		parent = d.alive
	}
	ctx, cancel := context.WithTimeout(parent, cmp.Or(d.hurried, callTimeout))
	d.t.Cleanup(cancel)
	return ctx
}

func (v *volume) delete() error {
	_, err := v.controller.DeleteVolume(v.within(), &csi.DeleteVolumeRequest{VolumeId: v.id, Secrets: v.provisioner})
	return err
}

func (v *volume) publish(node string) error {
	r, err := v.controller.ControllerPublishVolume(v.within(), &csi.ControllerPublishVolumeRequest{
		VolumeId: v.id, NodeId: node, VolumeCapability: v.capability, Secrets: v.provisioner,
	})
	v.attachment = r.GetPublishContext()
	return err
}

func (v *volume) unpublish(node string) error {
	_, err := v.controller.ControllerUnpublishVolume(v.within(), &csi.ControllerUnpublishVolumeRequest{
		VolumeId: v.id, NodeId: node, Secrets: v.provisioner,
	})
	return err
}

func (v *volume) staging() string { return v.path("staging-" + v.name) }
func (v *volume) target() string  { return v.path("target-" + v.name) }

func (v *volume) stage(n csi.NodeClient) error {
	_, err := n.NodeStageVolume(v.within(), &csi.NodeStageVolumeRequest{
		VolumeId: v.id, PublishContext: v.attachment, StagingTargetPath: v.staging(),
		VolumeCapability: v.capability, Secrets: v.user,
	})
	return err
}

// mount stages a volume, and shows it to a pod.
func (v *volume) mount(n csi.NodeClient) error {
	if err := v.stage(n); err != nil {
		return err
	}
	_, err := n.NodePublishVolume(v.within(), &csi.NodePublishVolumeRequest{
		VolumeId: v.id, PublishContext: v.attachment, StagingTargetPath: v.staging(), TargetPath: v.target(),
		VolumeCapability: v.capability,
	})
	return err
}

func (v *volume) unmount(n csi.NodeClient) error {
	_, err := n.NodeUnpublishVolume(v.within(), &csi.NodeUnpublishVolumeRequest{
		VolumeId:   v.id,
		TargetPath: v.target(),
	})
	_, unstage := n.NodeUnstageVolume(v.within(), &csi.NodeUnstageVolumeRequest{
		VolumeId:          v.id,
		StagingTargetPath: v.staging(),
	})
	return errors.Join(err, unstage)
}

// must fails the test at the first error.
func (d *driver) must(errs ...error) {
	d.t.Helper()
	for _, err := range errs {
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *driver) wantCode(what string, err error, want codes.Code) {
	d.t.Helper()
	if got := status.Code(err); got != want {
		d.t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
}
