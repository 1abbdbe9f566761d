package gluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	csiapi "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/gluster"
	"github.com/holdfast-storage/holdfast/csi/node"
	"github.com/holdfast-storage/holdfast/csi/server"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// killEnv makes the test binary the node part of h1 on a socket, which kills itself at the point of
// a number: before or after something that it writes to its disk, or asks of its runtime. Its value
// is "socket number".
const killEnv = "HOLDFAST_TEST_KILL"

// volumesDir is where a node part has what it knows of volumes.
const volumesDir = "/var/lib/holdfast/csi"

// TestNode_isKilledAtEachStep kills the node part at each point while it mounts and unmounts a
// volume. The next one does both, and leaves nothing behind.
func TestNode_isKilledAtEachStep(t *testing.T) {
	b := newBed(t)
	b.processes["h1"].Kill(t)
	v := b.create("pvc-1", 64*mib, alone)
	b.must(v.publish("h1"))
	points := 0
	for v.killedAt(points + 1) {
		points++
	}
	t.Logf("there are %d points", points)
	// As many as with CephFS, but for the two files of ceph-fuse, which are written before and after a point each.
	if points < 18 {
		t.Errorf("there are only %d points", points)
	}
	b.must(v.unpublish("h1"), v.delete())
}

// killedAt says whether the node part came to a point.
func (v *volume) killedAt(at int) bool {
	v.t.Helper()
	h, name := v.Lab.Host(1), fmt.Sprintf("mortal-%d", at)
	cmd := h.Command(context.Background(), "/proc/self/exe")
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s %d", killEnv, v.path(name), at))
	mortal := h.Launch(v.t, name, cmd)
	v.nodes["h1"] = csiapi.NewNodeClient(v.dial(name))
	alive, end := context.WithCancel(v.t.Context())
	go func() {
		<-mortal.Done()
		end()
	}()
	v.alive = alive
	mountError := v.mount("h1")
	failed := mountError
	if failed == nil {
		v.fill(1, "data", 1)
		failed = v.unmount("h1")
	}
	v.alive = nil
	killed := alive.Err() != nil || failed != nil
	if alive.Err() == nil {
		mortal.Kill(v.t)
	}
	v.node(1)
	if mountError != nil {
		v.must(v.mount("h1"))
		v.fill(1, "data", 1)
	}
	if killed {
		v.must(v.unmount("h1"))
	}
	v.processes["h1"].Kill(v.t)
	v.nothingOn(h)
	if v.t.Failed() {
		v.t.Fatalf("killed at point %d", at)
	}
	return killed
}

// dieAtAPoint is the node part that kills itself.
func dieAtAPoint() {
	socket, at := "", int64(0)
	if _, err := fmt.Sscan(os.Getenv(killEnv), &socket, &at); err != nil {
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
	atomicfile.Watch(volumesDir, func(effect func() error) error {
		point()
		defer point()
		return effect()
	})
	processes, err := detached.New(detached.Config{Dir: filepath.Join(volumesDir, "processes")})
	if err != nil {
		panic(err)
	}
	err = server.Run(context.Background(), server.Config{
		Endpoint: socket, Log: slog.Default(),
		Node: node.New(node.Config{Name: "h1", Dir: volumesDir, Backends: []backend.Node{
			&gluster.Node{FileNode: carrier.FileNode{
				Carriers: &carrier.Carriers{Runtime: mortal{processes, point}},
			}},
		}}),
	})
	panic(errors.Join(err, errors.New("it ended")))
}

// mortal comes to a point before and after a process is stopped.
type mortal struct {
	carrier.Runtime

	point func()
}

func (m mortal) Stop(ctx context.Context, name string) error {
	m.point()
	defer m.point()
	return m.Runtime.Stop(ctx, name)
}
