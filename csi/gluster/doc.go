// Package gluster is the back end of the CSI driver for GlusterFS. A volume is a Volume of
// Holdfast's API, whose size is enforced: Controller declares it and waits for the engine. Node has
// a glusterfs client for each volume mount it (FUSE).
//
// Which nodes have a volume is noted in the Volume (AnnotationNodes). Nothing else is kept: names
// follow from requests, so that a call that was cut off is made again and finds what it has made.
package gluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// Name is the back end's.
const Name = "glusterfs"

// The keys of what Publish returns.
const (
	// contextServers are the servers that tell a client where the bricks are, joined by commas.
	contextServers = "servers"
	// contextVolume is the volume's name in the pool.
	contextVolume = "volume"
)

// labelManaged marks the Volumes that the driver has made: it deletes and grows no other.
const (
	labelManaged = "app.kubernetes.io/managed-by"
	managedBy    = "holdfast-csi"
)

// Connect returns a client of Holdfast's API. It asks the API nothing before the first request.
func Connect(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Volume", "StorageCluster", "StorageStatus"} {
		m.Add(api.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: m})
}

// nameOf is what the API calls a volume.
func nameOf(h backend.Handle) types.NamespacedName {
	return types.NamespacedName{Namespace: h.Pool, Name: h.Name}
}

// told gives an error of the API's its code.
func told(err error) error {
	_, has := status.FromError(err)
	var answer apierrors.APIStatus
	switch {
	case err == nil || has:
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	case apierrors.IsNotFound(err):
		return status.Errorf(codes.NotFound, "the API of Holdfast does not know it: %v", err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return status.Errorf(codes.Aborted, "it was changed at the same time: %v; call again", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return status.Errorf(codes.InvalidArgument, "the API of Holdfast refused: %v", err)
	case errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError &&
		answer.Status().Code != http.StatusTooManyRequests:
		return status.Errorf(codes.Internal, "the API of Holdfast refused: %v", err)
	}
	return status.Errorf(codes.Unavailable, "the API of Holdfast does not answer: %v; the call is made again", err)
}

// missing is the error for a volume that is not there.
func missing(h backend.Handle) error {
	return status.Errorf(codes.NotFound, "there is no Volume %s in namespace %s", h.Name, h.Pool)
}

// own says whether the driver has made a Volume for a cluster.
func own(v *api.Volume, cluster string) error {
	switch {
	case v.Labels[labelManaged] != managedBy:
		return fmt.Errorf("the Volume %s in namespace %s was not made by this driver", v.Name, v.Namespace)
	case v.Spec.Cluster != cluster:
		return fmt.Errorf("the Volume %s in namespace %s is of the cluster %s", v.Name, v.Namespace, v.Spec.Cluster)
	}
	return nil
}
