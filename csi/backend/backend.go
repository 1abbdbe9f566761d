// Package backend is what the CSI driver holdfast.io asks of a storage system: the contract, and
// the names of volumes. A back end returns errors with gRPC's codes (package status), with
// sentences for people.
package backend

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// DriverName is the name of the driver in Kubernetes.
const DriverName = "holdfast.io"

// Modes are access modes of CSI.
type Modes = []csi.VolumeCapability_AccessMode_Mode

// OneNodeModes are the modes of a volume that one node at a time has.
func OneNodeModes() Modes {
	return Modes{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
	}
}

// FileModes are the modes of files that several nodes may share. That one node of several alone writes is
// not enforced, so MULTI_NODE_SINGLE_WRITER is none of them.
func FileModes() Modes {
	return append(OneNodeModes(),
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
}

// Controller makes volumes, and says which node may have them. Each method may be called again
// after it was cut off.
type Controller interface {
	// Name is the first part of handles, and the value of the parameter "backend" of a class.
	Name() string
	// Modes are the access modes that volumes can have.
	Modes() Modes
	// Create makes a volume of at least r.Bytes, or finds the one that an earlier call made.
	Create(ctx context.Context, secrets Secrets, r Request) (Handle, int64, error)
	// Delete removes a volume. One that is not there is no error.
	Delete(ctx context.Context, secrets Secrets, h Handle) error
	// Find fails with NotFound where there is no such volume.
	Find(ctx context.Context, secrets Secrets, h Handle) error
	// Publish gives a volume to a node, and returns how the node reaches it now.
	Publish(ctx context.Context, secrets Secrets, h Handle, a Attachment) (map[string]string, error)
	// Unpublish takes a volume from a node, or from each one if node is empty.
	Unpublish(ctx context.Context, secrets Secrets, h Handle, node string) error
	// Grow makes a volume at least as large as bytes, and returns its size.
	Grow(ctx context.Context, secrets Secrets, h Handle, bytes int64) (int64, error)
}

// Request is what CreateVolume asks of a back end.
type Request struct {
	// Name is safe everywhere; see NameOf.
	Name string
	// Bytes is the least, Limit the largest size; zero where any will do.
	Bytes, Limit int64
	// Parameters are the class's.
	Parameters map[string]string
}

// Attachment is the use of a volume on a node.
type Attachment struct {
	Node string
	Mode csi.VolumeCapability_AccessMode_Mode
}

// Alone says whether no other node may have the volume at the same time.
func (a Attachment) Alone() bool {
	return a.Mode != csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY &&
		a.Mode != csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER &&
		a.Mode != csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
}

// IsReadOnly says whether users of a mode of access can read alone.
func IsReadOnly(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY ||
		mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}

// Node has volumes appear on this node. Each method may be called again after it was cut off.
type Node interface {
	// Name is the first part of handles.
	Name() string
	// Stage mounts a volume at v.Staging.
	Stage(ctx context.Context, v Volume) error
	// Unstage unmounts a volume, and leaves nothing of it on the node.
	Unstage(ctx context.Context, v Volume) error
	// Grow makes the mounted filesystem as large as the volume is.
	Grow(ctx context.Context, v Volume) error
	// Way is a sentence that says what carries a staged volume on this node, and how.
	Way(v Volume) string
	// Problem is a sentence about a staged volume that does not work, with what to do; empty when
	// all is well.
	Problem(ctx context.Context, v Volume) string
}

// Volume is one on this node.
type Volume struct {
	ID     string
	Handle Handle
	// Dir is a directory for the volume alone, which exists from before Stage until after Unstage.
	Dir string
	// Staging is where the volume is mounted once on the node.
	Staging string
	// FSType is the filesystem to make; empty: the back end's choice.
	FSType string
	// Options are those of the mount.
	Options []string
	// Context is what Publish returned.
	Context map[string]string
	// Secrets are the node's own.
	Secrets Secrets
}
