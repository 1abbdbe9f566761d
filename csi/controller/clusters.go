package controller

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// ErrNoCluster says that there is no such StorageCluster.
var ErrNoCluster = errors.New("there is no such StorageCluster")

// Clusters knows the StorageClusters that classes name.
type Clusters interface {
	// Offline returns what the StorageStatus of a cluster says while it is OFFLINE; empty otherwise. It
	// fails with ErrNoCluster.
	Offline(ctx context.Context, namespace, name string) (string, error)
}

// WithClusters has the service make no volume while the cluster is OFFLINE that the class names.
func (s *Server) WithClusters(c Clusters) *Server {
	s.clusters = c
	return s
}

// checkCluster has a claim wait while its cluster is OFFLINE: the answer is Unavailable, so the
// provisioner asks again, and shows the sentence in an event of the claim. Classes that people made
// may name no cluster.
func (s *Server) checkCluster(ctx context.Context, parameters map[string]string) error {
	namespace, name := parameters[backend.ParameterNamespace], parameters[backend.ParameterCluster]
	if s.clusters == nil || namespace == "" || name == "" {
		return nil
	}
	said, err := s.clusters.Offline(ctx, namespace, name)
	switch {
	case errors.Is(err, ErrNoCluster):
		return status.Errorf(codes.FailedPrecondition, "StorageCluster %s/%s, which the StorageClass names, does not "+
			"exist; use another StorageClass", namespace, name)
	case err != nil:
		return status.Errorf(codes.Unavailable,
			"the state of StorageCluster %s/%s is not known: %v; the call is made again", namespace, name, err)
	case said != "":
		return status.Errorf(codes.Unavailable,
			"StorageCluster %s/%s is OFFLINE: %s; the volume is made when the cluster is back", namespace, name,
			strings.TrimRight(said, "."))
	}
	return nil
}
