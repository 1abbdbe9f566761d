package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestGlusterDrain takes nodes out of a pool, while clients write to a volume with three copies and to one with a single one. What
// would cost data is refused; a node goes when its bricks have moved, although the leader is killed in the middle of it.
func TestGlusterDrain(t *testing.T) {
	begin(t)
	b := glusterBed(t, 4)
	spec := glusterPool + glusterVolume("data", "300Mi", "replicate: {count: 3}") + glusterVolume("single", "600Mi", "distribute: {}")
	for _, h := range b.Lab.Hosts() {
		spec += glusterNode(h, 1)
	}
	b.applies(1, spec)
	b.awaitPool("the volumes to serve", func() error {
		return errors.Join(b.bricksServe(1, "data", 3)(), b.bricksServe(1, "single", 1)())
	})
	clients := []*client{b.mountVolume(4, "data"), b.mountVolume(4, "single")}
	clients[1].fill(b, 100)
	for _, step := range []struct {
		name string
		do   func(*bed, []*client)
	}{
		{"a volume does not shrink", (*bed).volumeShrinks},
		{"the last copies stay", (*bed).lastCopiesStay},
		{"a node is drained, and the leader is killed", (*bed).nodeDrained},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&bed{t, b.Home}, clients) }) {
			return
		}
	}
	for _, c := range clients {
		c.end(t)
	}
	b.copiesAgree(clients[0], false)
	b.glusterGone(spec)
}

// fill writes so many MiB beside what the client writes.
func (c *client) fill(b *bed, mib int) {
	b.Helper()
	script := fmt.Sprintf(`for i in $(seq %d); do head -c 1M /dev/urandom >"$0/fill$i" || exit; done; cd "$0" && sha256sum fill* >%s/filled`, mib, c.dir())
	c.host.Run(b, context.Background(), "bash", "-c", script, c.command[len(c.command)-1])
}

// filled fails the test unless all that fill wrote reads as it was written.
func (c *client) filled(b *bed) {
	b.Helper()
	c.host.Run(b, context.Background(), "bash", "-c", `cd "$0" && sha256sum --quiet -c `+c.dir()+"/filled", c.command[len(c.command)-1])
}

// volumeShrinks asks for less room than the data takes: nothing is changed.
func (b *bed) volumeShrinks(clients []*client) {
	out, code := b.apply(1, glusterVolume("single", "10Mi", "distribute: {}"))
	if code != 3 || !strings.Contains(out, "bricks never shrink") {
		b.Errorf("holdfast apply ended with %d:\n%s", code, out)
	}
	if v, err := read[api.Volume](b, 1, "volumes", "single"); err != nil || v.Spec.Size.String() != "600Mi" {
		b.Errorf("the volume is declared with %s: %v", &v.Spec.Size, err)
	}
	b.goOn(clients)
}

// lastCopiesStay takes back a node while another one that has the same data is off: that is refused, and where it is said that it may
// wait, nothing moves. When the node is declared again
// and the other one is back, all is as it was.
func (b *bed) lastCopiesStay(clients []*client) {
	nodes := b.nodesOf("data")
	nodes = slices.DeleteFunc(nodes, func(name string) bool { return name == "h1" || name == "h4" }) // where commands and clients are
	off, leaves := b.hostNamed(nodes[0]), b.nodesOf("data")
	leaves = slices.DeleteFunc(leaves, func(name string) bool { return name == off.Name })
	before := b.bricks("data")
	off.PowerOff(b)
	b.awaitPool("the node to be missed", b.missed(1, clients[0].name))
	out := b.holdfast(3, "delete", "storagenode", leaves[0])
	if !strings.Contains(out, "nothing was changed:\nnode/"+leaves[0]) || !strings.Contains(out, "of the same set does not serve") {
		b.Errorf("holdfast delete says:\n%s", out)
	}
	b.run("get", "storagenode", leaves[0])
	b.run("delete", "storagenode", leaves[0], "--when-possible")
	b.awaitPool("the refusal to be told", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && !strings.Contains(strings.Join(s.Status.Reasons, "\n"), "of the same set does not serve") {
			err = fmt.Errorf("%q", s.Status.Reasons)
		}
		return err
	})
	b.goOn(clients[:1])
	b.applies(1, glusterNode(b.hostNamed(leaves[0]), 1))
	off.PowerOn(b)
	b.StartServer(b, b.number(off.Name))
	b.awaitPool("all to be healed", b.bricksServe(1, "data", 3))
	b.awaitPool("all of the single brick", b.bricksServe(1, "single", 1))
	if after := b.bricks("data"); !slices.Equal(after, before) {
		b.Errorf("the bricks were %q and are %q", before, after)
	}
	b.goOn(clients)
}

// nodeDrained takes back the node with the only brick of a volume, and kills the leader while the brick is being emptied.
func (b *bed) nodeDrained(clients []*client) {
	h := b.hostNamed(b.nodesOf("single")[0])
	b.run("delete", "storagenode", h.Name)
	b.awaitPool("the brick to be emptied", func() error {
		v, err := read[api.Volume](b, 1, "volumes", "single")
		if err != nil || !slices.ContainsFunc(v.Status.Bricks, func(x api.VolumeBrick) bool { return x.Node == h.Name && x.Message == "it is being emptied" }) {
			return fmt.Errorf("%w%+v", err, v.Status.Bricks)
		}
		return nil
	})
	leader := b.leader()
	b.Server(leader).Kill(b)
	b.StartServer(b, leader)
	b.awaitPool("the node to be gone", func() error {
		daemons, err := b.daemonsFrom(leader%3 + 1)
		if slices.ContainsFunc(daemons, func(d api.Daemon) bool { return d.Spec.Host == h.Name }) {
			return errors.New("its glusterd is there still")
		}
		return err
	})
	b.awaitPool("the volumes to serve on the others", func() error {
		if nodes := append(b.nodesOf("data"), b.nodesOf("single")...); slices.Contains(nodes, h.Name) {
			return fmt.Errorf("bricks lie on %q", nodes)
		}
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && (s.Status.GlusterFS == nil || s.Status.GlusterFS.Peers != 3) {
			err = fmt.Errorf("the pool is %+v", s.Status.GlusterFS)
		}
		return errors.Join(err, b.bricksServe(1, "data", 3)(), b.bricksServe(1, "single", 1)())
	})
	for _, process := range b.glusterProcesses() {
		if host, command, _ := strings.Cut(process, " "); host == h.Name && !strings.Contains(command, "--process-name fuse") {
			b.Errorf("%s still runs %s", host, command)
		}
	}
	b.awaitPool("its disks to be free", b.disksFree(h.Name))
	b.goOn(clients)
	clients[1].filled(b)
	// A person who is told to run gluster on a node needs to know no socket.
	b.hostNamed(b.nodesOf("data")[0]).Run(b, b.Context(), "gluster", "volume", "heal", "data", "info")
}

// nodesOf are the nodes that have the bricks of a volume.
func (b *bed) nodesOf(volume string) (nodes []string) {
	b.Helper()
	for _, brick := range b.bricks(volume) {
		node, _, _ := strings.Cut(brick, ":")
		nodes = append(nodes, node)
	}
	return nodes
}

// bricks are the bricks of a volume as node:path.
func (b *bed) bricks(volume string) (bricks []string) {
	b.Helper()
	v, err := read[api.Volume](b, 1, "volumes", volume)
	if err != nil {
		b.Fatalf("%v", err)
	}
	for _, brick := range v.Status.Bricks {
		bricks = append(bricks, brick.Node+":"+brick.Path)
	}
	return bricks
}

// disksFree checks that all disks of a host can be used for something new.
func (b *bed) disksFree(host string) func() error {
	return func() error {
		h, err := read[api.Host](b, 1, "hosts", host)
		for _, d := range h.Status.Devices {
			if d.Availability != api.DeviceAvailable {
				err = errors.Join(err, fmt.Errorf("%s: %s", d.ID, strings.Join(d.Reasons, "; ")))
			}
		}
		return err
	}
}
