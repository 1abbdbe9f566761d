package gluster

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
)

// daemon is GlusterFS's client, which mounts by FUSE.
const daemon = "glusterfs"

// Node mounts volumes on this node.
type Node struct {
	carrier.FileNode
}

var _ backend.Node = (*Node)(nil)

// Name implements backend.Node.
func (*Node) Name() string { return Name }

// Stage implements backend.Node.
func (n *Node) Stage(ctx context.Context, v backend.Volume) error {
	if v.FSType != "" && v.FSType != daemon {
		return status.Errorf(codes.InvalidArgument,
			"cannot make the filesystem %q: a volume of GlusterFS has files of its own; "+
				"remove csi.storage.k8s.io/fstype from the StorageClass", v.FSType)
	}
	if v.Context[contextServers] == "" || v.Context[contextVolume] == "" {
		return status.Errorf(codes.InvalidArgument, "the publish_context lacks %s or %s; attach the volume first",
			contextServers, contextVolume)
	}
	late := "the servers " + v.Context[contextServers] + " of GlusterFS do not answer for volume " + v.Handle.Name +
		"; see whether the cluster is ONLINE"
	err := n.Carriers.Mount(ctx, v, late, func() ([]string, error) { return commandOf(v), nil })
	if status.Code(err) == codes.Unavailable { // the client has ended, and its last words say little
		return status.Errorf(codes.Unavailable, "the servers %s of GlusterFS do not give volume %s: %s",
			v.Context[contextServers], v.Handle.Name, status.Convert(err).Message())
	}
	return err
}

// commandOf is the command of a volume's client. Each server can tell it where the bricks are.
func commandOf(v backend.Volume) []string {
	command := []string{daemon, "--no-daemon", "--log-file=-", "--log-level=WARNING", "--process-name=fuse"}
	for server := range strings.SplitSeq(v.Context[contextServers], ",") {
		command = append(command, "--volfile-server="+server)
	}
	options := slices.DeleteFunc(slices.Clone(v.Options), func(o string) bool { return o == "ro" })
	if len(options) < len(v.Options) {
		command = append(command, "--read-only")
	}
	if len(options) > 0 {
		command = append(command, "--fuse-mountopts="+strings.Join(options, ","))
	}
	return append(command, "--volfile-id=/"+v.Context[contextVolume], v.Staging)
}
