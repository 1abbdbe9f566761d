package rbd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/csi/disk"
	"github.com/holdfast-storage/holdfast/csi/loop"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

// lookEvery is how often a condition is looked at that nothing tells of.
const lookEvery = 50 * time.Millisecond

// Node has images appear on this node.
type Node struct {
	// Clients are the connections to clusters.
	Clients *conn.Clients
	// Carriers runs a process for each volume.
	Carriers *carrier.Carriers
}

var _ backend.Node = (*Node)(nil)

// Name implements backend.Node.
func (*Node) Name() string { return Name }

// Stage implements backend.Node.
func (n *Node) Stage(ctx context.Context, v backend.Volume) error {
	images, _, done, err := inPool(n.Clients, v.Secrets, v.Handle)
	if err != nil {
		return err
	}
	defer done()
	mounted, err := disk.IsMounted(v.Staging)
	if err != nil {
		return err
	}
	if mounted {
		if why := n.Problem(ctx, v); why != "" {
			return status.Error(codes.Internal, why)
		}
		return nil
	}
	size, err := images.Size(ctx, v.Handle.Name)
	if err != nil {
		return conn.Told(err)
	}
	fsType, err := disk.Choose(v.FSType, int64(size))
	if err != nil {
		return err
	}
	if err := n.carry(ctx, images, v, int64(size)); err != nil {
		return err
	}
	device, err := loop.Attach(ctx, file(v))
	if err != nil {
		return err
	}
	return disk.Mount(ctx, device, v.Staging, fsType, v.Options, journal{images, v.Handle.Name})
}

// carry has the volume's process run, and the image's client noted in the image.
func (n *Node) carry(ctx context.Context, images *rbd.Pool, v backend.Volume, size int64) error {
	known, useful := n.Carriers.Known(v)
	if known && !useful {
		if err := n.drop(ctx, v); err != nil { // of a process that ended, nothing is of use any more
			return err
		}
		known = false
	}
	if !known {
		if err := awaitWatchers(ctx, images, v, 0); err != nil {
			return err
		}
		if err := n.start(ctx, v); err != nil {
			return err
		}
	}
	if err := n.awaitFile(ctx, v, size); err != nil {
		return err
	}
	if err := awaitWatchers(ctx, images, v, 1); err != nil {
		return err
	}
	return noteTheClient(ctx, images, v)
}

// noteTheClient notes who has the image open: from here on, something may be written to it.
func noteTheClient(ctx context.Context, images *rbd.Pool, v backend.Volume) error {
	watchers, err := images.Watchers(ctx, v.Handle.Name)
	if err != nil {
		return conn.Told(err)
	}
	if len(watchers) != 1 {
		return status.Errorf(codes.Unavailable,
			"image %s has %d clients, and can have one; the call is made again", v.Handle.Name, len(watchers))
	}
	return conn.Told(images.SetNote(ctx, v.Handle.Name, noteClient, watchers[0].Address))
}

// awaitWatchers waits until as many clients have the image open. One that was cut off counts for 30
// seconds more.
func awaitWatchers(ctx context.Context, images *rbd.Pool, v backend.Volume, wanted int) error {
	for {
		watchers, err := images.Watchers(ctx, v.Handle.Name)
		if err != nil {
			return conn.Told(err)
		}
		if len(watchers) == wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.DeadlineExceeded, "image %s is open%s; it can be attached when it is closed",
				v.Handle.Name, by(context.WithoutCancel(ctx), images, v.Handle.Name))
		case <-time.After(lookEvery):
		}
	}
}

// Unstage implements backend.Node.
func (n *Node) Unstage(ctx context.Context, v backend.Volume) error {
	if err := disk.Unmount(v.Staging); err != nil {
		return err
	}
	if err := n.drop(ctx, v); err != nil {
		return err
	}
	images, _, done, err := inPool(n.Clients, v.Secrets, v.Handle)
	if err != nil {
		return err
	}
	defer done()
	err = images.RemoveNote(ctx, v.Handle.Name, noteClient)
	if rbd.IsMissing(err) { // somebody has deleted the image
		return nil
	}
	return conn.Told(err)
}

// drop ends what carries a volume that is not mounted.
func (n *Node) drop(ctx context.Context, v backend.Volume) error {
	if err := loop.Detach(ctx, file(v)); err != nil {
		return err
	}
	if err := n.Carriers.Stop(ctx, v); err != nil {
		return err
	}
	if err := disk.Remove(file(v)); err != nil { // a process that was killed leaves its mount
		return err
	}
	for _, name := range []string{socketName, keyName, confName, loop.Note(fileName)} {
		if err := os.Remove(filepath.Join(v.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Grow implements backend.Node.
func (n *Node) Grow(ctx context.Context, v backend.Volume) error {
	if why := n.Problem(ctx, v); why != "" {
		return status.Error(codes.Internal, why)
	}
	images, _, done, err := inPool(n.Clients, v.Secrets, v.Handle)
	if err != nil {
		return err
	}
	defer done()
	size, err := images.Size(ctx, v.Handle.Name)
	if err != nil {
		return conn.Told(err)
	}
	if err := resize(ctx, filepath.Join(v.Dir, socketName), int64(size)); err != nil {
		return err
	}
	if err := n.awaitFile(ctx, v, int64(size)); err != nil {
		return err
	}
	device, err := loop.Attach(ctx, file(v))
	if err != nil {
		return err
	}
	if err := loop.Resize(device); err != nil {
		return err
	}
	return disk.Grow(device, v.Staging)
}

// Way implements backend.Node.
func (n *Node) Way(v backend.Volume) string {
	return n.Carriers.Way(v, "it shows the image in user space, as a file that is a disk by a loop device")
}

// Problem implements backend.Node.
func (n *Node) Problem(_ context.Context, v backend.Volume) string { return n.Carriers.Problem(v) }

// journal keeps the note that a filesystem is being made in the image itself: another node may be
// the next to look.
type journal struct {
	images *rbd.Pool
	image  string
}

func (j journal) Formatting(ctx context.Context) (bool, error) {
	note, err := j.images.Note(ctx, j.image, noteFormatting)
	return note != "", conn.Told(err)
}

func (j journal) SetFormatting(ctx context.Context, on bool) error {
	if on {
		return conn.Told(j.images.SetNote(ctx, j.image, noteFormatting, "true"))
	}
	return conn.Told(j.images.RemoveNote(ctx, j.image, noteFormatting))
}
