package gluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestVolume goes through the life of a volume: two nodes share it, it outlives the driver on its
// node, its size is enforced and grows, and its client is killed. Servers that are silent hold it
// up, and no more.
func TestVolume(t *testing.T) {
	b := newBed(t)
	v := b.create("pvc-1", 64*mib, shared)
	b.must(v.publish("h1"), v.publish("h2"), v.mount("h1"), v.mount("h2"), v.mount("h2"))
	sum := v.fill(1, "data", 20)
	if got := v.sum(2, "data"); got != sum {
		t.Error("on another node the volume has other data")
	}
	b.wantCode("delete while it is attached", v.delete(), codes.FailedPrecondition, "h1, h2")
	t.Run("the driver is killed while a pod writes", v.driverKilled)
	t.Run("more than its size is refused until it has grown", v.full)
	t.Run("the client is killed", v.clientKilled)
	b.must(v.unmount("h1"), v.unmount("h1"), v.unpublish("h1"))
	b.wantCode("delete while it is attached", v.delete(), codes.FailedPrecondition, "h2")
	b.must(v.unmount("h2"), v.unpublish("h2"), v.unpublish("h2"), v.delete(), v.delete())
	b.noBrick("pvc-1")
	t.Run("one node alone", b.oneNode)
	t.Run("larger than the cluster", b.tooLarge)
	t.Run("the servers are silent", b.silent)
}

// driverKilled kills the node part while a process writes: nothing fails, and the next part knows
// the volume.
func (v *volume) driverKilled(t *testing.T) {
	h := v.Lab.Host(1)
	writer := h.Start(t, "sh", "-c",
		`exec >`+v.target()+`/ticks; while :; do date +%s%N || exit 1; sleep 0.05; done`)
	v.processes["h1"].Kill(t)
	v.node(1)
	v.stats("h1", false)
	writer.Kill(t)
	out := h.Run(t, t.Context(), "awk",
		`NR > 1 && $1 - last > most { most = $1 - last } { last = $1 } END { print NR, most / 1e9 }`,
		v.target()+"/ticks")
	lines, most := 0, 0.0
	if _, err := fmt.Sscan(out, &lines, &most); err != nil || lines < 2 || most > 1 {
		t.Errorf("lines written, and the longest pause in seconds: %s %v", out, err)
	}
}

// full shows that no more can be written than the size, on any node, and that df shows the size.
func (v *volume) full(t *testing.T) {
	write := func(number int) error {
		_, err := v.Lab.Host(number).Try(t.Context(), "sh", "-c",
			`for i in $(seq 30); do head -c 4M /dev/zero >>"$0" && sync "$0" || exit 1; done`, v.target()+"/more")
		return err
	}
	if write(1) == nil {
		t.Error("120 MiB more were written to a volume of 64 MiB")
	}
	v.grow(256 * mib)
	home.Await(t, "df to show the new size", func() error {
		out, err := v.Lab.Host(2).Try(t.Context(), "df", "--output=size", "-BM", v.target())
		if err == nil && !strings.Contains(out, "256M") {
			err = errors.New(out)
		}
		return err
	})
	v.Lab.Host(1).Run(t, t.Context(), "rm", v.target()+"/more")
	home.Await(t, "the volume to take more", func() error { return write(2) })
}

// clientKilled kills the client on a node: the volume says so there, works elsewhere, and can be
// mounted again.
func (v *volume) clientKilled(t *testing.T) {
	sum := v.fill(1, "kept", 4)
	v.Lab.Host(1).Run(t, t.Context(), "pkill", "-9", "-f", "[g]lusterfs --no-daemon")
	home.Await(t, "the volume's condition to be bad", func() error {
		if !v.condition("h1").GetAbnormal() {
			return errors.New("it is good")
		}
		return nil
	})
	v.stats("h2", false)
	v.wantCode("stage again", v.stage("h1"), codes.Internal, "delete the pod")
	v.must(v.unmount("h1"), v.mount("h1"))
	if got := v.sum(1, "kept"); got != sum {
		t.Error("the volume has other data")
	}
	v.stats("h1", false)
}

// oneNode shows that a volume for one node is for one, and one for readers takes no writes.
func (b *bed) oneNode(t *testing.T) {
	v := b.create("pvc-2", 64*mib, alone)
	b.must(v.publish("h1"), v.mount("h1"))
	v.fill(1, "data", 1)
	b.wantCode("publish to another node", v.publish("h2"), codes.FailedPrecondition, "h1", "h2")
	b.must(v.unmount("h1"), v.unpublish("h1"))
	v.mode = readers
	b.must(v.publish("h1"), v.publish("h2"), v.mount("h1"), v.mount("h2"))
	if v.sum(1, "data") != v.sum(2, "data") {
		t.Error("two nodes read different data")
	}
	if out, err := b.Lab.Host(1).Try(t.Context(), "touch", v.target()+"/new"); err == nil {
		t.Errorf("a reader could write: %s", out)
	}
	b.must(v.unmount("h1"), v.unmount("h2"), v.unpublish("h1"), v.unpublish("h2"), v.delete())
}

// tooLarge asks for more than there is, with both sizes in the answer. Nothing is left of it.
func (b *bed) tooLarge(t *testing.T) {
	_, err := b.controller.CreateVolume(b.within(callTimeout), asked("pvc-3", 100<<30, alone))
	b.wantCode("create", err, codes.ResourceExhausted, "100Gi", "left")
	if v, err := b.declared("pvc-3"); err == nil {
		t.Errorf("the Volume is left: %+v", v.Status)
	}
}

// silent stops all servers of the pool: each call ends in time, and works when it is made again.
func (b *bed) silent(t *testing.T) {
	v, unused := b.create("pvc-4", 64*mib, shared), b.create("pvc-6", 64*mib, alone)
	b.must(v.publish("h1"))
	restore := b.stopped(t)
	begun := time.Now()
	_, err := b.nodes["h1"].NodeStageVolume(b.within(10*time.Second), v.staging("h1"))
	if err == nil || time.Since(begun) > 15*time.Second {
		t.Errorf("stage: %v after %v", err, time.Since(begun))
	}
	_, err = b.controller.DeleteVolume(b.within(8*time.Second), &csi.DeleteVolumeRequest{VolumeId: unused.id})
	if !isLater(err) {
		t.Errorf("delete: %v", err)
	}
	_, err = b.controller.CreateVolume(b.within(8*time.Second), asked("pvc-5", 64*mib, alone))
	if !isLater(err) {
		t.Errorf("create: %v", err)
	}
	restore()
	home.Await(t, "the volume to be mounted", func() error { return v.mount("h1") })
	v.fill(1, "data", 1)
	home.Await(t, "the volume to be removed", unused.delete)
	other := b.createAgain("pvc-5", 64*mib, alone)
	b.must(v.unmount("h1"), v.unpublish("h1"), v.delete(), other.delete())
}

// stopped stops all processes of GlusterFS's servers; they run on after restore.
func (b *bed) stopped(t *testing.T) (restore func()) {
	t.Helper()
	signal := func(name string) {
		for _, h := range b.Lab.Hosts() {
			h.Run(t, t.Context(), "sh", "-c", "pkill -"+name+" -x 'glusterd|glusterfsd'")
		}
	}
	signal("STOP")
	return func() { signal("CONT") }
}

func (b *bed) within(limit time.Duration) context.Context {
	parent := b.t.Context()
	if b.alive != nil {
		parent = b.alive
	}
	ctx, cancel := context.WithTimeout(parent, limit)
	b.t.Cleanup(cancel)
	return ctx
}

// noBrick fails if a host has a directory of a volume's.
func (b *bed) noBrick(name string) {
	b.t.Helper()
	for _, h := range b.Lab.Hosts() {
		out := h.Run(b.t, b.t.Context(), "find", "/var/lib/holdfast", "-name", filepath.Base(name)+".*")
		if out != "" {
			b.t.Errorf("%s: left: %s", h.Name, out)
		}
	}
}
