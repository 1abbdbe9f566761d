package csi

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/cephfs"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/csi/node"
	"github.com/holdfast-storage/holdfast/csi/rbd"
	"github.com/holdfast-storage/holdfast/csi/server"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// killEnv makes the test binary the node part of node n1 in a directory, which kills itself at the
// point of a number: before or after something that it writes to its disk, or asks of Ceph. Its
// value is "directory number".
const killEnv = "HOLDFAST_TEST_KILL"

// TestNode_isKilledAtEachStep kills the node part at each point while it mounts and unmounts a
// volume. The next one does both, and leaves nothing behind.
func TestNode_isKilledAtEachStep(t *testing.T) {
	d := newDriver(t)
	d.killedAtEach(40)
	d.noImage("pvc-1")
}

// killedAtEach kills the node part at each of its points, of which there are at least so many.
func (d *driver) killedAtEach(least int) {
	d.t.Helper()
	for at := 1; !d.t.Failed(); at++ {
		if !d.killedAt(at) {
			d.t.Logf("there are %d points", at-1)
			if at < least {
				d.t.Errorf("there are only %d points", at-1)
			}
			return
		}
	}
}

// killedAt says whether the node part came to a point.
func (d *driver) killedAt(at int) bool {
	v := d.create(fmt.Sprintf("pvc-%d", at), 64*mib)
	d.must(v.publish("n1"))
	mortal := d.mortal(at)
	n1 := csi.NewNodeClient(d.dial("n1"))
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan struct{})
	go func() {
		_ = mortal.Wait()
		close(ended)
		cancel()
	}()
	d.alive = ctx
	mountError := v.mount(n1)
	unmountError := mountError
	if mountError == nil {
		v.fill("data", mib)
		unmountError = v.unmount(n1)
	}
	d.alive = nil
	killed := ctx.Err() != nil || unmountError != nil
	_ = mortal.Process.Kill() // it may be idle
	<-ended

	n1 = d.node("n1")
	if mountError != nil {
		d.must(v.mount(n1))
		v.fill("data", mib)
	}
	if killed {
		d.must(v.unmount(n1))
	}
	d.must(v.unpublish("n1"), v.delete())
	d.kill(d.nodes["n1"])
	if left, _ := filepath.Glob(d.path("dir-n1/*/*")); len(left) > 0 {
		d.t.Errorf("killed at point %d: left: %v", at, left)
	}
	return killed
}

// mortal starts a node part that kills itself at a point.
func (d *driver) mortal(at int) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", killEnv, d.dir, at))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.must(cmd.Start())
	return cmd
}

// dieAtAPoint is the node part that kills itself.
func dieAtAPoint() {
	dir, at := "", int64(0)
	if _, err := fmt.Sscan(os.Getenv(killEnv), &dir, &at); err != nil {
		panic(err)
	}
	os.Unsetenv(killEnv)
	var points atomic.Int64
	point := func() {
		if points.Add(1) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	volumes := filepath.Join(dir, "dir-n1")
	atomicfile.Watch(volumes, func(effect func() error) error {
		point()
		defer point()
		return effect()
	})
	carriers, err := detached.New(detached.Config{Dir: filepath.Join(volumes, "processes")})
	if err != nil {
		panic(err)
	}
	clients := &conn.Clients{Dial: func(cfg rados.Config) rados.ImageClient {
		return mortalClient{rados.DialImages(cfg), point}
	}}
	err = server.Run(context.Background(), server.Config{
		Endpoint: filepath.Join(dir, "n1"), Log: slog.Default(),
		Node: node.New(node.Config{Name: "n1", Dir: volumes, Backends: []backend.Node{
			&rbd.Node{Clients: clients, Carriers: &carrier.Carriers{Runtime: carriers}},
			&cephfs.Node{Clients: clients, FileNode: carrier.FileNode{
				Carriers: &carrier.Carriers{Runtime: carriers},
			}},
		}}),
	})
	panic(err)
}

// mortalClient comes to a point before and after each command for librbd, and for the monitors.
type mortalClient struct {
	rados.ImageClient

	point func()
}

func (m mortalClient) RBD(ctx context.Context, command any) ([]byte, error) {
	m.point()
	defer m.point()
	return m.ImageClient.RBD(ctx, command)
}

func (m mortalClient) Mon(ctx context.Context, command any, input []byte) ([]byte, error) {
	m.point()
	defer m.point()
	return m.ImageClient.Mon(ctx, command, input)
}
