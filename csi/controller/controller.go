// Package controller is the controller service of the CSI driver: it makes, publishes, grows and
// deletes volumes, each by the back end that the volume's id or class names. It keeps nothing
// itself.
package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/turn"
)

// ParameterBackend is the parameter of a class that names the back end. A class without it means the
// first.
const ParameterBackend = "backend"

// Nodes says which nodes there are.
type Nodes interface {
	Has(ctx context.Context, node string) (bool, error)
}

// Server is the controller service.
type Server struct {
	csi.UnimplementedControllerServer

	nodes    Nodes
	first    string
	backends map[string]backend.Controller
	turns    turn.Turns
	clusters Clusters
}

// New returns the service for some back ends, of which there is at least one.
func New(nodes Nodes, backends ...backend.Controller) *Server {
	s := &Server{nodes: nodes, first: backends[0].Name(), backends: map[string]backend.Controller{}}
	for _, b := range backends {
		s.backends[b.Name()] = b
	}
	return s
}

// ControllerGetCapabilities says what the service can do.
func (s *Server) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// named returns the back end of a class.
func (s *Server) named(parameters map[string]string) (backend.Controller, error) {
	name := cmp.Or(parameters[ParameterBackend], s.first)
	if b := s.backends[name]; b != nil {
		return b, nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "the StorageClass has the parameter %s=%q; name one of: %s",
		ParameterBackend, name, strings.Join(slices.Sorted(maps.Keys(s.backends)), ", "))
}

// of returns the back end of a volume; ok is false for an id that no back end here has made.
func (s *Server) of(id string) (b backend.Controller, h backend.Handle, ok bool) {
	h, ok = backend.Parse(id)
	if !ok {
		return nil, h, false
	}
	b, ok = s.backends[h.Backend]
	return b, h, ok
}

// existing is of for calls that need the volume.
func (s *Server) existing(id string) (backend.Controller, backend.Handle, error) {
	if err := given("volume_id", id); err != nil {
		return nil, backend.Handle{}, err
	}
	b, h, ok := s.of(id)
	if !ok {
		return nil, h, status.Errorf(codes.NotFound, "there is no volume %q: this driver makes no such ids", id)
	}
	return b, h, nil
}

func given(field, value string) error {
	if value == "" {
		return status.Errorf(codes.InvalidArgument, "the request has no %s", field)
	}
	return nil
}

// refusal says why a back end cannot give one of some capabilities; it is empty when it can.
func refusal(b backend.Controller, capabilities []*csi.VolumeCapability) string {
	for _, c := range capabilities {
		mode := c.GetAccessMode().GetMode()
		switch {
		case c.GetBlock() != nil:
			return "volumes of the back end " + b.Name() + " have no volumeMode Block yet; use volumeMode Filesystem"
		case c.GetMount() == nil:
			return "the volume capability has no access type; use volumeMode Filesystem"
		case !slices.Contains(b.Modes(), mode):
			return "volumes of the back end " + b.Name() + " cannot have the access mode " + mode.String() +
				"; use one of " + texts(b.Modes())
		}
	}
	return ""
}

func texts(modes backend.Modes) string {
	var all []string
	for _, m := range modes {
		all = append(all, m.String())
	}
	return strings.Join(all, ", ")
}
