package cephfs

import (
	"context"
	"errors"
	"strconv"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
)

// unit is what sizes are rounded up to: ceph-fuse counts in blocks of 4 MiB.
const unit = 4 << 20

// Controller makes subvolumes.
type Controller struct {
	// Clients are the connections to clusters.
	Clients *conn.Clients
}

var _ backend.Controller = (*Controller)(nil)

// Name implements backend.Controller.
func (*Controller) Name() string { return Name }

// Modes implements backend.Controller.
func (*Controller) Modes() backend.Modes { return backend.FileModes() }

// Create implements backend.Controller.
func (c *Controller) Create(
	ctx context.Context, secrets backend.Secrets, r backend.Request,
) (backend.Handle, int64, error) {
	bytes, err := backend.SizeFor(r, unit, unit)
	if err != nil {
		return backend.Handle{}, 0, err
	}
	client, done, err := c.Clients.Get(secrets)
	if err != nil {
		return backend.Handle{}, 0, err
	}
	defer done()
	name := r.Parameters[ParameterFilesystem]
	fs, found, err := find(ctx, client, func(f filesystem) bool { return f.Name == name })
	if err != nil {
		return backend.Handle{}, 0, err
	}
	if !found {
		return backend.Handle{}, 0, status.Errorf(codes.InvalidArgument,
			"Ceph has no filesystem %q; correct the parameter %s of the StorageClass", name, ParameterFilesystem)
	}
	if err := fs.isServed(); err != nil {
		return backend.Handle{}, 0, err
	}
	bytes, err = makeOrFind(ctx, subvolumes{client, fs}, r, bytes)
	return backend.Handle{
		Backend: Name, Cluster: secrets[backend.SecretCluster], Pool: strconv.FormatInt(fs.ID, 10), Name: r.Name,
	}, bytes, conn.Told(err)
}

// makeOrFind makes a subvolume, or takes the one of this name that an earlier call made.
func makeOrFind(ctx context.Context, s subvolumes, r backend.Request, bytes int64) (int64, error) {
	have, err := s.find(ctx, r.Name)
	switch {
	case err == nil && have.isHalf():
		if err := s.remove(ctx, r.Name); err != nil && !isMissing(err) {
			return 0, err
		}
	case err == nil && (have.Quota < r.Bytes || r.Limit > 0 && have.Quota > r.Limit):
		return 0, status.Errorf(codes.AlreadyExists, "there is a volume %s already, of %s", r.Name,
			backend.Bytes(have.Quota))
	case err == nil:
		return have.Quota, noteOvercommitOf(ctx, s, r)
	case !isMissing(err):
		return 0, err
	}
	if !overcommits(r) {
		if err := s.fs.hasRoom(ctx, s.client, bytes); err != nil {
			return 0, err
		}
	}
	if err := s.create(ctx, r.Name, bytes); err != nil {
		return 0, err
	}
	return bytes, noteOvercommitOf(ctx, s, r)
}

// isHalf says whether the subvolume has neither the quota that each whole one has, nor files.
func (v subvolume) isHalf() bool { return v.Quota == 0 && v.Used == 0 }

func overcommits(r backend.Request) bool { return r.Parameters[conn.ParameterOvercommit] == "true" }

func noteOvercommitOf(ctx context.Context, s subvolumes, r backend.Request) error {
	if !overcommits(r) {
		return nil
	}
	return s.setNote(ctx, r.Name, noteOvercommit, "true")
}

// Delete implements backend.Controller. The subvolume goes to the trash in a moment, and a manager
// empties the trash.
func (c *Controller) Delete(ctx context.Context, secrets backend.Secrets, h backend.Handle) error {
	s, found, done, err := open(ctx, c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	if !found { // the subvolumes have gone with their filesystem
		return nil
	}
	notes, err := s.notes(ctx, h.Name)
	if err != nil && !isMissing(err) {
		return conn.Told(err)
	}
	if node := otherNode(notes, "", ""); node != "" {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to node %s; detach it first",
			h.Name, node)
	}
	err = s.remove(ctx, h.Name)
	switch {
	case isMissing(err):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY):
		return status.Errorf(codes.FailedPrecondition,
			"volume %s has snapshots; remove them with 'ceph fs subvolume snapshot rm'", h.Name)
	}
	return conn.Told(err)
}

// Find implements backend.Controller.
func (c *Controller) Find(ctx context.Context, secrets backend.Secrets, h backend.Handle) error {
	s, done, err := existing(ctx, c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	_, err = s.whole(ctx, h.Name)
	return conn.Told(err)
}

// Grow implements backend.Controller.
func (c *Controller) Grow(
	ctx context.Context, secrets backend.Secrets, h backend.Handle, bytes int64,
) (int64, error) {
	s, done, err := existing(ctx, c.Clients, secrets, h)
	if err != nil {
		return 0, err
	}
	defer done()
	have, err := s.whole(ctx, h.Name)
	if err != nil {
		return 0, conn.Told(err)
	}
	wanted := backend.RoundUp(bytes, unit)
	if wanted <= have.Quota {
		return have.Quota, nil
	}
	notes, err := s.notes(ctx, h.Name)
	if err != nil && !isMissing(err) {
		return 0, conn.Told(err)
	}
	if notes[noteOvercommit] == "" {
		if err := s.fs.hasRoom(ctx, s.client, wanted-have.Quota); err != nil {
			return 0, err
		}
	}
	return wanted, conn.Told(s.resize(ctx, h.Name, wanted))
}
