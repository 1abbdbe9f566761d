// Package rbd is the back end of the CSI driver for images of Ceph. Controller makes them by
// librbd. Node has them appear as devices without a kernel module: one qemu-storage-daemon for each
// volume shows the image as a file (FUSE), and a loop device makes a disk of the file.
//
// Two notes in an image's own metadata say where it is in use: noteNode, the node that it was
// published to, and noteClient, the address of the very client that has it open, which is written
// before anything is written to the image. Fencing goes by them: a client that was cut off is no
// watcher of the image any more after 30 seconds, while it lives.
package rbd

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

// Name is the back end's.
const Name = "rbd"

// The notes in the metadata of an image.
const (
	noteNode   = "holdfast.io/node"
	noteClient = "holdfast.io/client"
	// noteFormatting is there while a filesystem is made: one that was cut off is made anew.
	noteFormatting = "holdfast.io/formatting"
	// noteOvercommit is there for a volume of a class that may promise more than the pool has.
	noteOvercommit = "holdfast.io/overcommit"
)

// The keys of what Publish returns.
const (
	contextMons = "monHost"
	contextPool = "pool"
)

// clientOf returns the connection that secrets describe; done gives it back.
func clientOf(c *Clients, secrets backend.Secrets) (client rados.ImageClient, done func(), err error) {
	if err := secrets.Check(); err != nil {
		return nil, nil, err
	}
	client, done = c.get(rados.Config{
		FSID: secrets[backend.SecretCluster], MonHost: secrets[backend.SecretMons],
		Entity: "client." + secrets[backend.SecretUser], Key: secrets[backend.SecretKey],
	})
	return client, done, nil
}

// inPool returns the pool of a volume, and the connection to its cluster.
func inPool(c *Clients, secrets backend.Secrets, h backend.Handle) (*rbd.Pool, rados.ImageClient, func(), error) {
	client, done, err := clientOf(c, secrets)
	if err != nil {
		return nil, nil, nil, err
	}
	number, err := strconv.ParseInt(h.Pool, 10, 64)
	if err == nil && secrets[backend.SecretCluster] == h.Cluster {
		return rbd.In(client, number), client, done, nil
	}
	done()
	if err != nil {
		return nil, nil, nil, status.Errorf(codes.NotFound, "there is no volume %s: it names no pool", h)
	}
	return nil, nil, nil, status.Errorf(codes.FailedPrecondition,
		"volume %s is of the Ceph cluster %s, and the Secret is of the cluster %s; correct the Secret", h,
		h.Cluster, secrets[backend.SecretCluster])
}

// told gives an error of Ceph's its code.
func told(err error) error {
	_, has := status.FromError(err)
	switch {
	case err == nil || has:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, rados.ErrNoAnswer):
		return status.Errorf(codes.Unavailable, "Ceph does not answer: %v; the call is made again", err)
	case rbd.IsMissing(err):
		return status.Errorf(codes.NotFound, "Ceph does not know it: %v", err)
	}
	return status.Errorf(codes.Internal, "Ceph refused: %v", err)
}
