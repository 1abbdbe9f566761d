package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/disk"
)

// statTimeout is how long a filesystem may take to say how full it is.
const statTimeout = 5 * time.Second

// NodePublishVolume shows a staged volume to a pod.
func (s *Server) NodePublishVolume(
	ctx context.Context, r *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	err := needs("volume_id", r.GetVolumeId(), "target_path", r.GetTargetPath(), "staging_target_path",
		r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetMount() == nil {
		return nil, status.Error(codes.InvalidArgument,
			"the request has no volume_capability of the access type mount; use volumeMode Filesystem")
	}
	var options []string
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	pod, known := podOf(r)
	err = s.turns.Do(ctx, r.GetVolumeId(), func() error {
		return s.publish(r.GetVolumeId(), r.GetTargetPath(), options, pod, known)
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// publish shows a staged volume at target, and notes the pod that sees it there, if it is known.
func (s *Server) publish(id, target string, options []string, pod Pod, known bool) error {
	_, v, err := s.staged(id)
	if err != nil {
		return err
	}
	mounted, err := disk.IsMounted(v.Staging)
	if err != nil {
		return err
	}
	if !mounted {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not mounted at %s; stage it first", id,
			v.Staging)
	}
	if known {
		if err := s.use(id, target, pod); err != nil {
			return err
		}
	}
	return disk.Bind(v.Staging, target, options)
}

// NodeUnpublishVolume undoes NodePublishVolume.
func (s *Server) NodeUnpublishVolume(
	ctx context.Context, r *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := needs("volume_id", r.GetVolumeId(), "target_path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	err := s.turns.Do(ctx, r.GetVolumeId(), func() error {
		if err := disk.Remove(r.GetTargetPath()); err != nil {
			return err
		}
		return s.unuse(r.GetVolumeId(), r.GetTargetPath())
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats says how full a volume is, and whether it works.
func (s *Server) NodeGetVolumeStats(
	ctx context.Context, r *csi.NodeGetVolumeStatsRequest,
) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := needs("volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	b, v, err := s.staged(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	mounted, err := disk.IsMounted(r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	if !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %s", v.ID, r.GetVolumePath())
	}
	usage, problem := stat(ctx, r.GetVolumePath())
	if why := b.Problem(ctx, v); why != "" {
		problem = why
	}
	return &csi.NodeGetVolumeStatsResponse{
		Usage: usage, VolumeCondition: &csi.VolumeCondition{Abnormal: problem != "", Message: condition(v, problem)},
	}, nil
}

func condition(v backend.Volume, problem string) string {
	if problem == "" {
		return "volume " + v.Handle.Name + " works"
	}
	return problem
}

// stat asks the filesystem, which may hang in the kernel.
func stat(ctx context.Context, path string) (usage []*csi.VolumeUsage, problem string) {
	type answer struct {
		s   unix.Statfs_t
		err error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		for a.err = unix.EINTR; errors.Is(a.err, unix.EINTR); {
			a.err = unix.Statfs(path, &a.s)
		}
		done <- a
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, fmt.Sprintf("the filesystem does not answer: %v; delete the pod that uses it", a.err)
		}
		return usageOf(a.s), ""
	case <-time.After(statTimeout):
	case <-ctx.Done():
	}
	return nil, "the filesystem did not answer in time; see whether the storage cluster is online"
}

func usageOf(s unix.Statfs_t) []*csi.VolumeUsage {
	block := s.Bsize
	usage := []*csi.VolumeUsage{{
		Unit: csi.VolumeUsage_BYTES, Total: int64(s.Blocks) * block,
		Available: int64(s.Bavail) * block, Used: int64(s.Blocks-s.Bfree) * block,
	}}
	if s.Ffree > s.Files { // CephFS has no limit of files, and says that all numbers are free
		return usage
	}
	return append(usage, &csi.VolumeUsage{
		Unit: csi.VolumeUsage_INODES, Total: int64(s.Files), Available: int64(s.Ffree),
		Used: int64(s.Files - s.Ffree),
	})
}
