package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestGlusterRepair breaks what volumes lie on, while clients write to one volume of each kind that survives that: a disk is pulled
// and replaced, and a node is cut off that has a client of its own. All is healed, all copies are right, and nothing is in split-brain.
func TestGlusterRepair(t *testing.T) {
	begin(t)
	b := glusterBed(t, 4)
	volumes := []string{"data", "arb", "disp"}
	spec := glusterPool + glusterVolume("data", "300Mi", "replicate: {count: 3}") + glusterVolume("arb", "300Mi", "arbiter: {}") +
		glusterVolume("disp", "300Mi", "disperse: {data: 2, redundancy: 1}")
	nodes := func() (text string) {
		for _, h := range b.Lab.Hosts()[:3] {
			text += glusterNode(h, 1)
		}
		return text
	}
	b.applies(1, spec+nodes())
	b.awaitPool("the volumes to serve", b.allServe(1, 3, volumes...))
	var clients []*client
	for _, name := range volumes {
		clients = append(clients, b.mountVolume(4, name))
	}
	for _, step := range []struct {
		name string
		do   func(*bed, []*client)
	}{
		{"a disk is pulled and replaced", (*bed).diskReplaced},
		{"a node is cut off", (*bed).nodeCutOff},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&bed{t, b.Home}, clients) }) {
			return
		}
	}
	for i, c := range clients {
		c.end(t)
		if volumes[i] != "disp" { // its bricks have fragments
			b.copiesAgree(c, volumes[i] == "arb")
		}
	}
	b.glusterGone(spec + nodes())
}

// goOn waits until all clients write on.
func (b *bed) goOn(clients []*client) {
	b.Helper()
	for _, c := range clients {
		c.goesOn(b.T)
	}
}

// diskReplaced pulls the disk of the node that reports on the pool, and puts a new one in: the bricks are filled again from the
// others.
func (b *bed) diskReplaced(clients []*client) {
	number := b.speaker()
	h := b.Lab.Host(number)
	old := h.Disk(0).ID()
	h.Disk(0).Pull(b)
	b.awaitPool("the bricks on it to be missed", b.missed(1, "data", "arb", "disp"))
	b.goOn(clients)
	h.Disk(0).Replace(b)
	b.awaitPool("the new disk to be seen and accepted", b.takes(1, glusterNode(h, 1)))
	for _, c := range clients {
		b.awaitPool("volume "+c.name+" to be healed", b.servesWithout(1, c.name, 3, old))
	}
	b.goOn(clients)
}

// nodeCutOff cuts the cable of the node whose server leads. A client on it writes nothing meanwhile, as two others have the quorum.
func (b *bed) nodeCutOff(clients []*client) {
	leader := b.leader()
	other := leader%3 + 1
	h := b.Lab.Host(leader)
	inside := b.mountVolume(leader, "data")
	h.Cut(b)
	start := time.Now()
	b.awaitPool("people to be told", b.told(other, "node/"+h.Name+": agent of host "+h.Name+" disconnected"))
	if took := time.Since(start); took > 30*time.Second { // 15 s without a heartbeat, the next leader, and a busy machine
		b.Errorf("it took %s to tell of it", took)
	}
	b.awaitPool("the node's bricks to be missed, and no others", b.missesNode(other, h.Name, "data", "arb", "disp"))
	b.Logf("told after %s", time.Since(start))
	b.goOn(clients)
	before := inside.written()
	b.goOn(clients)
	if now := inside.written(); now != before {
		b.Errorf("the client on the node that is cut off has written %d objects while others wrote, too", now-before)
	}
	h.Restore(b)
	b.AwaitHosts(b, 4)
	for _, c := range clients {
		b.awaitPool("volume "+c.name+" to be healed", b.bricksServe(other, c.name, 3))
	}
	inside.goesOn(b.T)
	b.Logf("%s was cut off: that the client on it failed meanwhile is right, it had no quorum", h.Name)
	inside.end(b.T)
	for _, c := range clients {
		if v, err := read[api.Volume](b, 1, "volumes", c.name); err != nil || len(v.Status.SplitBrains) > 0 {
			b.Errorf("volume %s: %v, in split-brain: %q", c.name, err, v.Status.SplitBrains)
		}
	}
}

// missesNode checks that of each of some volumes the bricks of one node do not serve, and all others do.
func (b *bed) missesNode(server int, node string, names ...string) func() error {
	return func() error {
		for _, name := range names {
			v, err := read[api.Volume](b, server, "volumes", name)
			if err != nil {
				return err
			}
			if v.Status.State == api.ResourceOffline {
				b.Errorf("volume %s, whose clients write on, is said to be offline: %s", name, v.Status.Message)
			}
			for _, brick := range v.Status.Bricks {
				if brick.Online == (brick.Node == node) || v.Status.State != api.ResourceDegraded {
					return fmt.Errorf("%s: it is %s, %+v", name, v.Status.State, brick)
				}
			}
		}
		return nil
	}
}

// told checks that the StorageStatus gives this reason.
func (b *bed) told(server int, want string) func() error {
	return func() error {
		s, err := read[api.StorageStatus](b, server, "storagestatuses", "gluster")
		if err == nil && !slices.ContainsFunc(s.Status.Reasons, func(r string) bool { return strings.HasPrefix(r, want) }) {
			err = fmt.Errorf("%s %q", s.Status.Status, s.Status.Reasons)
		}
		return err
	}
}
