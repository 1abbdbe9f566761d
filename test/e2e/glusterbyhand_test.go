package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestGlusterByHand does by hand what people do: a brick's file system is unmounted, a volume is deleted, and a host that was removed
// while it was away joins again with an empty disk. No data is covered up or made anew in silence.
func TestGlusterByHand(t *testing.T) {
	begin(t)
	b := glusterBed(t, 4)
	spec := glusterPool + glusterVolume("data", "300Mi", "replicate: {count: 3}")
	for _, h := range b.Lab.Hosts() {
		spec += glusterNode(h, 1)
	}
	b.applies(1, spec)
	b.awaitPool("the volume to serve", b.bricksServe(1, "data", 3))
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"a brick is unmounted", (*bed).brickUnmounted},
		{"the pool is changed", (*bed).glusterChanged},
		{"the volume is deleted", (*bed).volumeDeleted},
		{"a host that was gone joins again", (*bed).goneJoinsAgain},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&bed{t, b.Home}) }) {
			return
		}
	}
	b.glusterGone(spec)
}

func (b *bed) volume(name string) *api.Volume {
	b.Helper()
	v, err := read[api.Volume](b, 1, "volumes", name)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return &v
}

// onBricks runs a command in the directory of each brick that a volume had.
func (b *bed) onBricks(v *api.Volume, command string) {
	b.Helper()
	for _, brick := range v.Status.Bricks {
		b.hostNamed(brick.Node).Run(b, context.Background(), "bash", "-c", "cd "+brick.Path+" && "+command)
	}
}

// brickUnmounted ends a brick and unmounts its file system: it is mounted again, and serves.
func (b *bed) brickUnmounted() {
	brick := b.volume("data").Status.Bricks[0]
	h, mount := b.hostNamed(brick.Node), strings.TrimSuffix(brick.Path, "/bricks/data.1")
	h.Run(b, context.Background(), "bash", "-c", "umount -l "+mount+" && kill -9 $(pgrep -x glusterfsd)")
	b.awaitPool("it to be mounted again", func() error {
		_, err := h.Try(context.Background(), "mountpoint", mount)
		return err
	})
	b.awaitPool("the brick to serve again", b.bricksServe(1, "data", 3))
}

// volumeDeleted deletes a volume with the program gluster. What is left of it is named and stays; a person accepts the loss.
func (b *bed) volumeDeleted() {
	was := b.volume("data")
	b.onBricks(was, "echo precious > file")
	b.Lab.Host(1).Run(b, context.Background(), "bash", "-c", "gluster --mode=script volume stop data force && gluster --mode=script volume delete data")
	b.awaitPool("the loss to be told", func() error {
		v := b.volume("data")
		if c := meta.FindStatusCondition(v.Status.Conditions, api.ResourcePresent); c == nil || c.Reason != api.ReasonDeletedOutside || v.Status.State != api.ResourceOffline {
			return fmt.Errorf("%s: %s", v.Status.State, v.Status.Message)
		}
		for _, brick := range was.Status.Bricks {
			if name := b.hostNamed(brick.Node).IP + ":" + brick.Path; !strings.Contains(v.Status.Message, name) {
				return fmt.Errorf("%s is not named: %s", name, v.Status.Message)
			}
		}
		return nil
	})
	b.Logf("%s", b.volume("data").Status.Message)
	if out := b.Lab.Host(1).Run(b, context.Background(), "gluster", "volume", "list"); strings.Contains(out, "data") {
		b.Errorf("a volume was made in its place: %s", out)
	}
	b.holdfast(0, "recreate", "volume", "data", "--lost", was.Status.ID)
	b.awaitPool("a new volume", func() error {
		if now := b.volume("data").Status.ID; now == was.Status.ID || now == "" {
			return fmt.Errorf("its id is %q", now)
		}
		return b.bricksServe(1, "data", 3)()
	})
	b.onBricks(was, "grep precious file")
}

// goneJoinsAgain removes a host that is off, empties its disk, and has it join again under its name.
func (b *bed) goneJoinsAgain() {
	const number = 4
	h := b.Lab.Host(number)
	h.PowerOff(b)
	b.await("the host to be found silent", b.heard(1, h.Name, false))
	b.holdfast(0, "host", "remove", h.Name, "--gone", "--delete-nodes")
	b.awaitPool("the host to be gone", func() error {
		_, err := read[api.Host](b, 1, "hosts", h.Name)
		if err == nil {
			return errors.New("it is there")
		}
		if strings.Contains(err.Error(), "host "+h.Name+" does not exist") {
			return nil
		}
		return err
	})
	if err := h.Disk(0).Discard(context.Background()); err != nil {
		b.Fatalf("%v", err)
	}
	h.PowerOn(b)
	b.StartAgent(b, number, b.Token(b, "agent"))
	b.AwaitHosts(b, number)
	b.applies(1, strings.TrimPrefix(glusterNode(h, 1), "---\n"))
	b.awaitPool("its disk to be used again", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "gluster")
		if err == nil && (s.Status.GlusterFS == nil || s.Status.GlusterFS.PeersConnected != number || s.Status.Status != api.StorageOnline) {
			err = fmt.Errorf("%s %q %+v", s.Status.Status, s.Status.Reasons, s.Status.GlusterFS)
		}
		return err
	})
	h.Run(b, context.Background(), "bash", "-c", "ls -d /var/lib/holdfast/agent/retired/default.gluster-glusterd-h4-*")
}
