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
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
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

// inPool returns the pool of a volume, and the connection to its cluster.
func inPool(
	c *conn.Clients, secrets backend.Secrets, h backend.Handle,
) (*rbd.Pool, rados.ImageClient, func(), error) {
	number, err := strconv.ParseInt(h.Pool, 10, 64)
	if err != nil {
		return nil, nil, nil, status.Errorf(codes.NotFound, "there is no volume %s: it names no pool", h)
	}
	client, done, err := c.For(secrets, h)
	if err != nil {
		return nil, nil, nil, err
	}
	return rbd.In(client, number), client, done, nil
}

// isOf says whether a pool is that of a volume.
func isOf(h backend.Handle) func(conn.Pool) bool {
	return func(p conn.Pool) bool { return strconv.FormatInt(p.Number, 10) == h.Pool }
}
