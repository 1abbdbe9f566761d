package gluster

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// Controller declares Volumes.
type Controller struct {
	// API returns the client of Holdfast's API.
	API func() (client.WithWatch, error)
}

var _ backend.Controller = (*Controller)(nil)

// Name implements backend.Controller.
func (*Controller) Name() string { return Name }

// Create implements backend.Controller.
func (c *Controller) Create(
	ctx context.Context, _ backend.Secrets, r backend.Request,
) (backend.Handle, int64, error) {
	h, err := handleOf(r)
	if err != nil {
		return h, 0, err
	}
	wanted, err := declarationOf(h, r)
	if err != nil {
		return h, 0, err
	}
	holdfast, err := c.API()
	if err != nil {
		return h, 0, err
	}
	ctx, cancel := early(ctx)
	defer cancel()
	v, err := find(ctx, holdfast, h)
	if err == nil && v != nil && v.DeletionTimestamp != nil { // an earlier one
		v, err = nil, gone(ctx, holdfast, h, v)
	}
	if err == nil && v == nil {
		v, err = wanted, declare(ctx, holdfast, h, wanted)
	}
	if err != nil {
		return h, 0, err
	}
	if err := fits(v, wanted, r); err != nil {
		return h, 0, err
	}
	v, err = await(ctx, holdfast, h, isMade)
	if err != nil {
		return h, 0, giveUp(ctx, holdfast, h, v, err)
	}
	return h, v.Spec.Size.Value(), nil
}

// declarationOf is the Volume for a request.
func declarationOf(h backend.Handle, r backend.Request) (*api.Volume, error) {
	bytes, err := sizeFor(r)
	if err != nil {
		return nil, err
	}
	durability, err := durabilityOf(r.Parameters[ParameterDurability])
	if err != nil {
		return nil, err
	}
	return &api.Volume{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Pool, Name: h.Name, Labels: map[string]string{labelManaged: managedBy},
		},
		Spec: api.VolumeSpec{
			Cluster: h.Cluster, Size: *resource.NewQuantity(bytes, resource.BinarySI),
			SizePolicy: api.SizeEnforced, Durability: durability, DeletionPolicy: api.DeletionWipe,
		},
	}, nil
}

// declare makes a Volume of a cluster that is there and serves.
func declare(ctx context.Context, c client.Client, h backend.Handle, v *api.Volume) error {
	cluster := &api.StorageCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: h.Pool, Name: h.Cluster}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return status.Errorf(codes.FailedPrecondition,
			"StorageCluster %s/%s, which the StorageClass names, does not exist; use another StorageClass, or declare "+
				"the cluster", h.Pool, h.Cluster)
	case err != nil:
		return told(err)
	case cluster.Spec.Type != api.StorageGlusterFS:
		return status.Errorf(codes.InvalidArgument, "the StorageCluster %s in namespace %s is of type %s, not %s",
			h.Cluster, h.Pool, cluster.Spec.Type, api.StorageGlusterFS)
	}
	if why := offline(ctx, c, h); why != "" {
		return status.Errorf(codes.Unavailable, "%s; the volume is made when the cluster is ONLINE", why)
	}
	return told(c.Create(ctx, v))
}

// fits fails for a Volume of the name that is another one than a request wants.
func fits(v, wanted *api.Volume, r backend.Request) error {
	if err := own(v, wanted.Spec.Cluster); err != nil {
		return status.Errorf(codes.AlreadyExists, "%v; it is not used for the request", err)
	}
	have := v.Spec.Size.Value()
	switch {
	case have < r.Bytes || r.Limit > 0 && have > r.Limit:
		return status.Errorf(codes.AlreadyExists, "there is a volume %s already, of %s", v.Name, backend.Bytes(have))
	case v.UID != "" && !sameDurability(v, wanted):
		return status.Errorf(codes.AlreadyExists, "there is a volume %s already, of another durability", v.Name)
	}
	return nil
}

func sameDurability(a, b *api.Volume) bool {
	return equality.Semantic.DeepEqual(a.Spec.Durability, b.Spec.Durability)
}

// isMade says whether a Volume can be used, and no more written to it than its size.
func isMade(v *api.Volume) (bool, error) {
	switch {
	case v == nil:
		return false, status.Error(codes.Aborted, "the volume was deleted while it was being made; call again")
	case v.DeletionTimestamp != nil:
		return false, status.Errorf(codes.Aborted, "the volume %s is being deleted; call again", v.Name)
	case serves(v) && isLimited(v):
		return true, nil
	}
	return false, refused(v)
}

// serves says whether clients can read and write.
func serves(v *api.Volume) bool {
	return v.Status.State == api.ResourceOnline || v.Status.State == api.ResourceDegraded
}

// isLimited says whether the size that is declared is the one that is enforced.
func isLimited(v *api.Volume) bool {
	return v.Status.Limit != nil && v.Status.Limit.Cmp(v.Spec.Size) == 0
}

// giveUp is the error of a Create that failed. Nobody may ask for the Volume again that was refused.
func giveUp(ctx context.Context, c client.WithWatch, h backend.Handle, v *api.Volume, err error) error {
	if v == nil || v.DeletionTimestamp != nil || refused(v) == nil || isBegun(v) {
		return err
	}
	failed := client.IgnoreNotFound(c.Delete(ctx, v, just(v)))
	if failed == nil {
		failed = gone(ctx, c, h, v)
	}
	if failed != nil {
		return told(failed)
	}
	return err
}

// Find implements backend.Controller.
func (c *Controller) Find(ctx context.Context, _ backend.Secrets, h backend.Handle) error {
	holdfast, err := c.API()
	if err != nil {
		return err
	}
	v, err := find(ctx, holdfast, h)
	if err == nil && v == nil {
		err = missing(h)
	}
	return err
}

// Delete implements backend.Controller.
func (c *Controller) Delete(ctx context.Context, _ backend.Secrets, h backend.Handle) error {
	holdfast, err := c.API()
	if err != nil {
		return err
	}
	ctx, cancel := early(ctx)
	defer cancel()
	var was *api.Volume
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if was, err = find(ctx, holdfast, h); err != nil || was == nil {
			return err
		}
		return remove(ctx, holdfast, h, was)
	})
	if err != nil || was == nil {
		return told(err)
	}
	return gone(ctx, holdfast, h, was)
}

// gone waits until a Volume that is being deleted is gone.
func gone(ctx context.Context, c client.WithWatch, h backend.Handle, was *api.Volume) error {
	_, err := await(ctx, c, h, func(v *api.Volume) (bool, error) { return v == nil || v.UID != was.UID, nil })
	return err
}

// remove deletes a Volume of the driver's that no node has.
func remove(ctx context.Context, c client.Client, h backend.Handle, v *api.Volume) error {
	if err := own(v, h.Cluster); err != nil {
		return status.Errorf(codes.FailedPrecondition, "%v; delete it yourself", err)
	}
	users, err := usersOf(v)
	switch {
	case err != nil:
		return err
	case len(users) > 0:
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s; detach it first", h.Name, users)
	case v.DeletionTimestamp != nil:
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, v, just(v)))
}
