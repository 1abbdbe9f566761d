// Package node is the node service of the CSI driver: it has volumes appear on this node, each by
// the back end that the volume's id names.
//
// What the service knows of a volume is in one directory for each volume, in the files of package
// state, which are written before anything is done and removed when all is undone. A service that
// was killed at any step, or an earlier one, is therefore followed by one that goes through the
// same steps again.
package node

import (
	"context"
	"log/slog"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/turn"
)

// Config is what the service needs.
type Config struct {
	// Name is the node's, as Kubernetes has it.
	Name string
	// Dir holds a directory for each volume.
	Dir      string
	Backends []backend.Node
	// Log has what Watch could not do; nil: the default one.
	Log *slog.Logger
}

// Server is the node service.
type Server struct {
	csi.UnimplementedNodeServer

	cfg      Config
	backends map[string]backend.Node
	turns    turn.Turns
	// usersMu guards the files with the users of volumes.
	usersMu sync.Mutex
}

// New returns the service.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{cfg: cfg, backends: map[string]backend.Node{}}
	for _, b := range cfg.Backends {
		s.backends[b.Name()] = b
	}
	return s
}

// NodeGetInfo says which node this is.
func (s *Server) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.cfg.Name}, nil
}

// NodeGetCapabilities says what the service can do.
func (s *Server) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_VOLUME_CONDITION,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// needs returns InvalidArgument for the first of pairs of a field's name and value whose value is
// empty.
func needs(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return status.Errorf(codes.InvalidArgument, "the request has no %s", pairs[i])
		}
	}
	return nil
}

// staged returns a volume that is staged, or was being staged, and its back end.
func (s *Server) staged(id string) (backend.Node, backend.Volume, error) {
	v, found, err := load(s.dir(id))
	if err != nil {
		return nil, v, err
	}
	b := s.backends[v.Handle.Backend]
	if !found || b == nil {
		return nil, v, status.Errorf(codes.NotFound, "volume %q is not staged on this node", id)
	}
	return b, v, nil
}
