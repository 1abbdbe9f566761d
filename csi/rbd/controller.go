package rbd

import (
	"context"
	"errors"
	"strconv"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

// ParameterPool is the parameter of a class that names the pool.
const ParameterPool = "pool"

// The sizes of volumes, in bytes.
const (
	mib = 1 << 20
	// smallestSize holds an ext4 filesystem.
	smallestSize = 16 * mib
)

// Controller makes images.
type Controller struct {
	// Clients are the connections to clusters.
	Clients *conn.Clients
}

var _ backend.Controller = (*Controller)(nil)

// Name implements backend.Controller.
func (*Controller) Name() string { return Name }

// Modes implements backend.Controller.
func (*Controller) Modes() backend.Modes { return backend.OneNodeModes() }

// Create implements backend.Controller.
func (c *Controller) Create(
	ctx context.Context, secrets backend.Secrets, r backend.Request,
) (backend.Handle, int64, error) {
	bytes, err := backend.SizeFor(r, mib, smallestSize)
	if err != nil {
		return backend.Handle{}, 0, err
	}
	client, done, err := c.Clients.Get(secrets)
	if err != nil {
		return backend.Handle{}, 0, err
	}
	defer done()
	name := r.Parameters[ParameterPool]
	p, found, err := conn.FindPool(ctx, client, func(p conn.Pool) bool { return p.Name == name })
	if err != nil {
		return backend.Handle{}, 0, err
	}
	if !found {
		return backend.Handle{}, 0, status.Errorf(codes.InvalidArgument,
			"Ceph has no pool %q; correct the parameter %s of the StorageClass", name, ParameterPool)
	}
	h := backend.Handle{
		Backend: Name, Cluster: secrets[backend.SecretCluster], Pool: strconv.FormatInt(p.Number, 10), Name: r.Name,
	}
	bytes, err = makeOrFind(ctx, rbd.In(client, p.Number), p, r, bytes)
	return h, bytes, conn.Told(err)
}

// makeOrFind makes an image, or takes the one of this name that an earlier call made.
func makeOrFind(ctx context.Context, images *rbd.Pool, p conn.Pool, r backend.Request, bytes int64) (int64, error) {
	have, err := images.Size(ctx, r.Name)
	switch {
	case err == nil && (int64(have) < r.Bytes || r.Limit > 0 && int64(have) > r.Limit):
		return 0, status.Errorf(codes.AlreadyExists, "there is a volume %s already, of %s", r.Name,
			backend.Bytes(int64(have)))
	case err == nil:
		return int64(have), nil
	case !rbd.IsMissing(err):
		return 0, err
	}
	overcommit := r.Parameters[conn.ParameterOvercommit] == "true"
	if err := p.HasRoom(bytes); err != nil && !overcommit {
		return 0, err
	}
	err = images.Create(ctx, r.Name, uint64(bytes))
	if errors.Is(err, syscall.EEXIST) {
		// A Create that was cut off has left a name without an image.
		if err = images.Remove(ctx, r.Name); err == nil || rbd.IsMissing(err) {
			err = images.Create(ctx, r.Name, uint64(bytes))
		}
	}
	if err == nil && overcommit {
		err = images.SetNote(ctx, r.Name, noteOvercommit, "true")
	}
	return bytes, err
}

// Delete implements backend.Controller. The image goes to the trash in a moment, and a manager
// empties the trash.
func (c *Controller) Delete(ctx context.Context, secrets backend.Secrets, h backend.Handle) error {
	images, client, done, err := inPool(c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	p, found, err := conn.FindPool(ctx, client, isOf(h))
	if err != nil || !found { // the images have gone with their pool
		return err
	}
	node, err := images.Note(ctx, h.Name, noteNode)
	if err == nil && node != "" {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to node %s; detach it first",
			h.Name, node)
	}
	if err == nil {
		err = images.MoveToTrash(ctx, h.Name)
	}
	if errors.Is(err, syscall.EBUSY) {
		return status.Errorf(codes.FailedPrecondition,
			"volume %s is open%s; it can be deleted when it is closed", h.Name, by(ctx, images, h.Name))
	}
	if err != nil && !rbd.IsMissing(err) {
		return conn.Told(err)
	}
	return emptyTrash(ctx, client, images, p.Name, h.Name)
}

// emptyTrash asks the manager to remove what the trash has of a name, also what an earlier Delete
// has put there.
func emptyTrash(ctx context.Context, client rados.Client, images *rbd.Pool, pool, name string) error {
	trash, err := images.Trash(ctx)
	if err != nil {
		return conn.Told(err)
	}
	for _, t := range trash {
		if t.Name != name {
			continue
		}
		_, err := client.Mgr(ctx, map[string]any{
			"prefix":        "rbd task add trash remove",
			"image_id_spec": pool + "/" + t.ID,
		}, nil)
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			return conn.Told(err)
		}
	}
	return nil
}

// by names who has an image open, as part of a sentence.
func by(ctx context.Context, images *rbd.Pool, name string) string {
	text := ""
	watchers, _ := images.Watchers(ctx, name) // without an answer the sentence says less
	for _, w := range watchers {
		text += " by " + w.Address
	}
	return text
}

// Find implements backend.Controller.
func (c *Controller) Find(ctx context.Context, secrets backend.Secrets, h backend.Handle) error {
	images, _, done, err := inPool(c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	_, err = images.Size(ctx, h.Name)
	return conn.Told(err)
}

// Grow implements backend.Controller.
func (c *Controller) Grow(
	ctx context.Context, secrets backend.Secrets, h backend.Handle, bytes int64,
) (int64, error) {
	images, client, done, err := inPool(c.Clients, secrets, h)
	if err != nil {
		return 0, err
	}
	defer done()
	size, err := images.Size(ctx, h.Name)
	if err != nil {
		return 0, conn.Told(err)
	}
	have, wanted := int64(size), (bytes+mib-1)/mib*mib
	if wanted <= have {
		return have, nil
	}
	overcommit, err := images.Note(ctx, h.Name, noteOvercommit)
	if err != nil {
		return 0, conn.Told(err)
	}
	p, _, err := conn.FindPool(ctx, client, isOf(h))
	if err != nil {
		return 0, err
	}
	if err := p.HasRoom(wanted - have); err != nil && overcommit == "" {
		return 0, err
	}
	return wanted, conn.Told(images.Grow(ctx, h.Name, uint64(wanted)))
}
