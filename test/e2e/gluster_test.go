package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestGluster is the life of a GlusterFS pool on real hosts: nodes and a volume are declared, a client writes to it by FUSE
// throughout. A brick is killed, a node loses its power while the leader is killed, a node is added and the volume grows. Everything
// is healed each time, nothing that was written is lost, and in the end nothing is left.
func TestGluster(t *testing.T) {
	begin(t)
	b := glusterBed(t, 4)
	spec := glusterPool
	for _, h := range b.Lab.Hosts()[:3] {
		spec += glusterNode(h, 2)
	}
	spec += glusterVolume("data", "500Mi", "replicate: {count: 3}")
	b.applies(1, spec)
	b.awaitPool("the volume to serve", b.bricksServe(1, "data", 3))
	b.awaitPool("the cluster to be online", func() error {
		if out := b.run("get", "storagestatuses"); !strings.Contains(out, "ONLINE") {
			return errors.New(out)
		}
		return nil
	})
	c := b.mountVolume(4, "data")
	for _, step := range []struct {
		name string
		do   func(*testing.T, *bed, *client)
	}{
		{"a brick is killed", brickKilled},
		{"glusterd is killed", glusterdKilled},
		{"a node loses its power, and the leader is killed", nodeAndLeader},
		{"a node is added, and the volume grows", nodeAdded},
		{"a node is off while its disk is replaced", diskReplacedOff},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, &bed{t, b.Home}, c) }) {
			return
		}
	}
	c.end(t)
	b.glusterGone(spec + glusterNode(b.Lab.Host(4), 2))
}

// brickKilled kills the process of a brick: it is started again and healed.
func brickKilled(t *testing.T, b *bed, c *client) {
	h := b.Lab.Host(2)
	h.Run(t, t.Context(), "bash", "-c", `kill -9 $(pgrep -x glusterfsd)`)
	b.awaitPool("the brick to be missed", b.missed(1, "data"))
	c.goesOn(t)
	b.awaitPool("the brick to serve again, healed", b.bricksServe(1, "data", 3))
}

// glusterdKilled kills glusterd: its brick serves on as the same process.
func glusterdKilled(t *testing.T, b *bed, c *client) {
	h := b.Lab.Host(3)
	before := h.Run(t, t.Context(), "pgrep", "-x", "glusterfsd")
	h.Run(t, t.Context(), "bash", "-c", `kill -9 $(pgrep -x glusterd)`)
	b.awaitPool("glusterd to be started again", func() error {
		if d := b.daemon("gluster-glusterd-" + h.Name); d.Status.State != api.DaemonRunning || d.Status.Restarts == 0 {
			return fmt.Errorf("it is %s, %d restarts", d.Status.State, d.Status.Restarts)
		}
		return nil
	})
	if after := h.Run(t, t.Context(), "pgrep", "-x", "glusterfsd"); after != before {
		t.Errorf("the brick was process %s and is %s", before, after)
	}
	c.goesOn(t)
	b.awaitPool("all bricks", b.bricksServe(1, "data", 3))
}

// nodeAndLeader takes the power of a node and kills the leader of the control plane.
func nodeAndLeader(t *testing.T, b *bed, c *client) {
	leader := b.leader()
	node := leader%3 + 1
	other := node%3 + 1
	h := b.Lab.Host(node)
	h.PowerOff(t)
	b.Server(leader).Kill(t)
	b.StartServer(t, leader)
	b.awaitPool("the node to be missed", b.missed(other, "data"))
	c.goesOn(t)
	h.PowerOn(t)
	b.StartServer(t, node)
	b.awaitPool("the node to be back and healed", b.bricksServe(other, "data", 3))
}

// nodeAdded adds a node, and has the volume grow beyond what three disks hold.
func nodeAdded(t *testing.T, b *bed, c *client) {
	h := b.Lab.Host(4)
	b.applies(1, strings.TrimPrefix(glusterNode(h, 2), "---\n"))
	b.awaitPool("the node to be in the pool", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && (s.Status.GlusterFS == nil || s.Status.GlusterFS.Peers != 4 || s.Status.GlusterFS.PeersConnected != 4) {
			err = fmt.Errorf("%+v", s.Status.GlusterFS)
		}
		return err
	})
	b.applies(1, strings.TrimPrefix(glusterVolume("data", "3Gi", "replicate: {count: 3}"), "---\n"))
	b.awaitPool("the volume to have grown", b.bricksServe(1, "data", 6))
	b.awaitPool("files to have moved to the new bricks", func() error {
		v, err := read[api.Volume](b, 1, "volumes", "data")
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(v.Status.Conditions, "Balanced") {
			return fmt.Errorf("%s, %+v", v.Status.Message, v.Status.Conditions)
		}
		last := v.Status.Bricks[5]
		_, err = b.hostNamed(last.Node).Try(t.Context(), "bash", "-c", "ls "+last.Path+"/h4/o*")
		return err
	})
	c.goesOn(t)
}

// diskReplacedOff takes the power of the node that reports on the pool, and brings it back with a new disk.
func diskReplacedOff(t *testing.T, b *bed, c *client) {
	number := b.speaker()
	other := number%3 + 1
	h := b.Lab.Host(number)
	old := h.Disk(0).ID()
	h.PowerOff(t)
	h.Disk(0).Replace(t)
	h.PowerOn(t)
	b.StartServer(t, number)
	c.goesOn(t)
	b.awaitPool("the new disk to be seen and accepted", b.takes(other, glusterNode(h, 2)))
	b.awaitPool("the bricks of the old disk to be healed elsewhere", b.servesWithout(other, "data", 6, old))
}
