package controller

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// ControllerPublishVolume gives a volume to a node.
func (s *Server) ControllerPublishVolume(
	ctx context.Context, r *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	if err := given("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := given("node_id", r.GetNodeId()); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "the request has no volume_capability")
	}
	b, h, err := s.existing(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if why := refusal(b, []*csi.VolumeCapability{r.GetVolumeCapability()}); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	there, err := s.nodes.Has(ctx, r.GetNodeId())
	if err != nil {
		return nil, fmt.Errorf("while looking for the node %s: %w", r.GetNodeId(), err)
	}
	if !there {
		return nil, status.Errorf(codes.NotFound, "there is no node %s", r.GetNodeId())
	}
	answer := &csi.ControllerPublishVolumeResponse{}
	err = s.turns.Do(ctx, h.Name, func() error {
		answer.PublishContext, err = b.Publish(ctx, r.GetSecrets(), h, backend.Attachment{
			Node: r.GetNodeId(), Mode: r.GetVolumeCapability().GetAccessMode().GetMode(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// ControllerUnpublishVolume takes a volume from a node. A volume that is not there is published
// nowhere.
func (s *Server) ControllerUnpublishVolume(
	ctx context.Context, r *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	if err := given("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	b, h, ok := s.of(r.GetVolumeId())
	if !ok {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	err := s.turns.Do(ctx, h.Name, func() error { return b.Unpublish(ctx, r.GetSecrets(), h, r.GetNodeId()) })
	if err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
