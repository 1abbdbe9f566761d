// Package cephfs is the back end of the CSI driver for directories of a CephFS. Controller makes
// them as subvolumes, by commands to Ceph's manager, each with a quota and a RADOS namespace of its
// own. Node mounts them without a kernel module: one ceph-fuse for each volume.
//
// Notes in a subvolume's own metadata name the nodes that it was published to.
package cephfs

import (
	"context"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
)

// Name is the back end's.
const Name = "cephfs"

// ParameterFilesystem is the parameter of a class that names the filesystem.
const ParameterFilesystem = "filesystem"

// Group is the subvolume group that holds the volumes of a filesystem.
const Group = "csi"

// GroupPath is the directory of Group: keys of nodes are for it alone.
const GroupPath = "/volumes/" + Group

// The notes in the metadata of a subvolume.
const (
	// noteNode begins the note about a node that has the volume.
	noteNode = "holdfast.io/node/"
	// noteOvercommit is there for a volume of a class that may promise more than the pool has.
	noteOvercommit = "holdfast.io/overcommit"
)

// The values of noteNode.
const (
	alone  = "alone" // no other node may have the volume
	shared = "shared"
)

// The keys of what Publish returns.
const (
	contextMons = "monHost"
	contextPath = "path"
)

// open returns the subvolumes of a volume's filesystem; done gives the connection back. found is
// false where the filesystem is gone, and its volumes with it.
func open(
	ctx context.Context, c *conn.Clients, secrets backend.Secrets, h backend.Handle,
) (s subvolumes, found bool, done func(), err error) {
	client, done, err := c.For(secrets, h)
	if err != nil {
		return subvolumes{}, false, nil, err
	}
	fs, found, err := find(ctx, client, func(f filesystem) bool { return strconv.FormatInt(f.ID, 10) == h.Pool })
	if err == nil && found {
		err = fs.isServed()
	}
	if err != nil {
		done()
		return subvolumes{}, false, nil, err
	}
	return subvolumes{client, fs}, found, done, nil
}

// existing is open for calls that need the filesystem.
func existing(
	ctx context.Context, c *conn.Clients, secrets backend.Secrets, h backend.Handle,
) (s subvolumes, done func(), err error) {
	s, found, done, err := open(ctx, c, secrets, h)
	if err != nil {
		return s, nil, err
	}
	if !found {
		done()
		return s, nil, status.Errorf(codes.NotFound, "there is no volume %s: Ceph has no filesystem %s", h.Name, h.Pool)
	}
	return s, done, nil
}
