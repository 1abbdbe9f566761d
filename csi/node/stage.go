package node

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// NodeStageVolume mounts a volume once on the node.
func (s *Server) NodeStageVolume(
	ctx context.Context, r *csi.NodeStageVolumeRequest,
) (*csi.NodeStageVolumeResponse, error) {
	if err := needs("volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetMount() == nil {
		return nil, status.Error(codes.InvalidArgument,
			"the request has no volume_capability of the access type mount; use volumeMode Filesystem")
	}
	h, ok := backend.Parse(r.GetVolumeId())
	b := s.backends[h.Backend]
	if !ok || b == nil {
		return nil, status.Errorf(codes.NotFound, "there is no volume %q", r.GetVolumeId())
	}
	v := backend.Volume{
		ID: r.GetVolumeId(), Handle: h, Dir: s.dir(r.GetVolumeId()), Staging: r.GetStagingTargetPath(),
		FSType:  r.GetVolumeCapability().GetMount().GetFsType(),
		Options: optionsOf(r.GetVolumeCapability()),
		Context: r.GetPublishContext(), Secrets: r.GetSecrets(),
	}
	if err := s.turns.Do(ctx, v.ID, func() error { return stage(ctx, b, v) }); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// optionsOf are those of the mount. A volume that is for readers alone is mounted so.
func optionsOf(c *csi.VolumeCapability) []string {
	options := c.GetMount().GetMountFlags()
	if backend.IsReadOnly(c.GetAccessMode().GetMode()) && !slices.Contains(options, "ro") {
		options = append(slices.Clone(options), "ro")
	}
	return options
}

func stage(ctx context.Context, b backend.Node, v backend.Volume) error {
	had, found, err := load(v.Dir)
	if err != nil {
		return err
	}
	if found && (had.Staging != v.Staging || had.FSType != v.FSType || !slices.Equal(had.Options, v.Options)) {
		return status.Errorf(codes.AlreadyExists, "volume %s is staged at %s in another way; unstage it first",
			v.ID, had.Staging)
	}
	if err := save(v); err != nil {
		return err
	}
	return b.Stage(ctx, v)
}

// NodeUnstageVolume undoes NodeStageVolume. A volume that is not staged is no error.
func (s *Server) NodeUnstageVolume(
	ctx context.Context, r *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	if err := needs("volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	err := s.turns.Do(ctx, r.GetVolumeId(), func() error { return s.unstage(ctx, r.GetVolumeId()) })
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (s *Server) unstage(ctx context.Context, id string) error {
	b, v, err := s.staged(id)
	if status.Code(err) == codes.NotFound {
		return forget(s.dir(id)) // keys, where a stage was cut off before the state was written
	}
	if err != nil {
		return err
	}
	if err := b.Unstage(ctx, v); err != nil {
		return err
	}
	return forget(v.Dir)
}

// NodeExpandVolume makes the filesystem of a staged volume as large as the volume.
func (s *Server) NodeExpandVolume(
	ctx context.Context, r *csi.NodeExpandVolumeRequest,
) (*csi.NodeExpandVolumeResponse, error) {
	if err := needs("volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	b, v, err := s.staged(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := s.turns.Do(ctx, v.ID, func() error { return b.Grow(ctx, v) }); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
}
