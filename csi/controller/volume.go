package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// CreateVolume makes a volume.
func (s *Server) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	b, err := s.creator(r)
	if err != nil {
		return nil, err
	}
	if err := s.checkCluster(ctx, r.GetParameters()); err != nil {
		return nil, err
	}
	limits := r.GetCapacityRange()
	wanted := backend.Request{
		Name:  backend.NameOf(r.GetName()),
		Bytes: limits.GetRequiredBytes(), Limit: limits.GetLimitBytes(), Parameters: r.GetParameters(),
	}
	volume := &csi.Volume{}
	err = s.turns.Do(ctx, wanted.Name, func() error {
		h, bytes, err := b.Create(ctx, r.GetSecrets(), wanted)
		volume.VolumeId, volume.CapacityBytes = h.String(), bytes
		return err
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: volume}, nil
}

// creator checks the request, and returns the back end that carries it out.
func (s *Server) creator(r *csi.CreateVolumeRequest) (backend.Controller, error) {
	if err := given("name", r.GetName()); err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no volume_capabilities")
	}
	b, err := s.named(r.GetParameters())
	if err != nil {
		return nil, err
	}
	if why := refusal(b, r.GetVolumeCapabilities()); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	if r.GetVolumeContentSource() != nil {
		return nil, status.Errorf(codes.InvalidArgument,
			"the back end %s makes empty volumes alone; leave dataSource out", b.Name())
	}
	limits := r.GetCapacityRange()
	if most, least := limits.GetLimitBytes(),
		limits.GetRequiredBytes(); most < 0 || least < 0 || most > 0 && most < least {
		return nil, status.Errorf(codes.OutOfRange,
			"a volume of at least %d and at most %d bytes cannot be made", least, most)
	}
	return b, nil
}

// DeleteVolume removes a volume. One that is not there is no error.
func (s *Server) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := given("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	b, h, ok := s.of(r.GetVolumeId())
	if !ok {
		return &csi.DeleteVolumeResponse{}, nil
	}
	err := s.turns.Do(ctx, h.Name, func() error { return b.Delete(ctx, r.GetSecrets(), h) })
	if err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ValidateVolumeCapabilities says whether a volume can be used in some way.
func (s *Server) ValidateVolumeCapabilities(
	ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	b, h, err := s.existing(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no volume_capabilities")
	}
	if err := b.Find(ctx, r.GetSecrets(), h); err != nil {
		return nil, err
	}
	if why := refusal(b, r.GetVolumeCapabilities()); why != "" {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: why}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(),
		Parameters: r.GetParameters(),
	}}, nil
}

// ControllerExpandVolume makes a volume larger.
func (s *Server) ControllerExpandVolume(
	ctx context.Context, r *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	if err := given("volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	limits := r.GetCapacityRange()
	if limits.GetRequiredBytes() <= 0 {
		return nil, status.Error(codes.InvalidArgument, "the request has no capacity_range with required_bytes")
	}
	b, h, err := s.existing(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	answer := &csi.ControllerExpandVolumeResponse{NodeExpansionRequired: true}
	err = s.turns.Do(ctx, h.Name, func() error {
		answer.CapacityBytes, err = b.Grow(ctx, r.GetSecrets(), h, limits.GetRequiredBytes())
		return err
	})
	if err != nil {
		return nil, err
	}
	if most := limits.GetLimitBytes(); most > 0 && answer.CapacityBytes > most {
		return nil, status.Errorf(codes.OutOfRange, "the volume has %d bytes, which is above the limit of %d",
			answer.CapacityBytes, most)
	}
	return answer, nil
}
