package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// glusterChanged changes with the program gluster what Holdfast made: each change is told, and put back
// where no data is concerned. A brick that is removed waits for a word, and keeps what is in it.
func (b *bed) glusterChanged() {
	v := b.volume("data")
	with, without := b.hostNamed(v.Status.Bricks[0].Node), b.withoutBrick(v)
	gluster := func(args ...string) string {
		return with.Run(b, context.Background(), "gluster", append([]string{"--mode=script"}, args...)...)
	}
	gluster("volume", "set", "data", "cluster.lookup-optimize", "on")
	b.toldOutside("volume/data", "cluster.lookup-optimize was set to on")
	b.awaitPool("the option to be set back", func() error {
		if out := gluster("volume", "get", "data", "cluster.lookup-optimize"); !strings.Contains(out, "off") {
			return errors.New(out)
		}
		return nil
	})
	gluster("volume", "stop", "data", "force")
	b.toldOutside("volume/data", "the volume was stopped outside Holdfast")
	b.awaitPool("the volume to be started again", b.bricksServe(1, "data", 3))
	gluster("peer", "detach", without.IP)
	b.toldOutside("node/"+without.Name, "was detached from the pool outside Holdfast")
	b.awaitPool("the node to be in the pool again", func() error {
		if out := gluster("pool", "list"); !strings.Contains(out, without.IP) {
			return errors.New(out)
		}
		return nil
	})
	b.brickTaken(v, gluster)
}

// brickTaken removes a brick of a volume by hand, and puts it back.
func (b *bed) brickTaken(v *api.Volume, gluster func(...string) string) {
	brick := v.Status.Bricks[2]
	h := b.hostNamed(brick.Node)
	name := h.IP + ":" + brick.Path
	b.onBricks(v, "echo precious > taken")
	gluster("volume", "remove-brick", "data", "replica", "2", name, "force")
	b.toldOutside("volume/data", "removed from volume data outside Holdfast: "+brick.Node+":"+brick.Path)
	b.awaitPool("the volume to wait for a word", func() error {
		s := b.volume("data").Status
		if s.State != api.ResourceDegraded || !strings.HasPrefix(s.Lost, "bricks-") {
			return fmt.Errorf("%s (%s): %s", s.State, s.Lost, s.Message)
		}
		return nil
	})
	if out, _ := b.holdfastSays("why", "volume/data"); !strings.Contains(out, brick.Node+":"+brick.Path) {
		b.Errorf("holdfast why does not name it:\n%s", out)
	}
	clean := "cat taken && rm -rf .glusterfs && setfattr -x trusted.glusterfs.volume-id . && setfattr -x trusted.gfid ."
	h.Run(b, context.Background(), "bash", "-c", "cd "+brick.Path+" && "+clean)
	gluster("volume", "add-brick", "data", "replica", "3", name, "force")
	b.awaitPool("all to be as it was", func() error {
		if s := b.volume("data").Status; s.Lost != "" {
			return fmt.Errorf("%s: %s", s.State, s.Message)
		}
		return b.bricksServe(1, "data", 3)()
	})
}

// withoutBrick is a host without a brick of a volume.
func (b *bed) withoutBrick(v *api.Volume) *hosts.Host {
	b.Helper()
	for _, h := range b.Lab.Hosts() {
		if !slices.ContainsFunc(v.Status.Bricks, func(x api.VolumeBrick) bool { return x.Node == h.Name }) {
			return h
		}
	}
	b.Fatal("each host has a brick")
	return nil
}

// toldOutside waits for the event of what somebody changed.
func (b *bed) toldOutside(object, part string) {
	b.Helper()
	b.awaitPool("the event of "+object, func() error {
		for _, e := range b.events() {
			if e.Code == string(engine.ChangedOutside) && e.Object == object && strings.Contains(e.Message, part) {
				b.Logf("%s: %s", e.Object, e.Message)
				return nil
			}
		}
		return fmt.Errorf("no event of %s has %q", object, part)
	})
}
