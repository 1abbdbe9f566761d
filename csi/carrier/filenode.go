package carrier

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// FileNode is the part of a backend.Node that is the same for all volumes that a process mounts by FUSE: all but its
// name and Stage, which calls Mount.
type FileNode struct {
	// Carriers runs a process for each volume.
	Carriers *Carriers
}

// Unstage implements backend.Node.
func (n FileNode) Unstage(ctx context.Context, v backend.Volume) error {
	return n.Carriers.Unmount(ctx, v)
}

// Grow implements backend.Node. The limit is the servers', and the process learns of it by itself.
func (n FileNode) Grow(ctx context.Context, v backend.Volume) error {
	if why := n.Problem(ctx, v); why != "" {
		return status.Error(codes.Internal, why)
	}
	return nil
}

// Way implements backend.Node.
func (n FileNode) Way(v backend.Volume) string {
	return n.Carriers.Way(v, "it mounts the volume in user space, by FUSE")
}

// Problem implements backend.Node.
func (n FileNode) Problem(_ context.Context, v backend.Volume) string { return n.Carriers.Problem(v) }
