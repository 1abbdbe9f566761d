package gluster

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// Grow implements backend.Controller.
func (c *Controller) Grow(ctx context.Context, _ backend.Secrets, h backend.Handle, bytes int64) (int64, error) {
	holdfast, err := c.API()
	if err != nil {
		return 0, err
	}
	ctx, cancel := early(ctx)
	defer cancel()
	wanted := backend.RoundUp(bytes, mib)
	_, err = change(ctx, holdfast, h, func(v *api.Volume) error {
		if err := own(v, h.Cluster); err != nil {
			return status.Errorf(codes.FailedPrecondition, "%v; raise its size yourself", err)
		}
		if v.Spec.Size.Value() < wanted {
			v.Spec.Size = *resource.NewQuantity(wanted, resource.BinarySI)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	v, err := await(ctx, holdfast, h, func(v *api.Volume) (bool, error) {
		if v == nil {
			return false, missing(h)
		}
		if isLimited(v) {
			return true, nil
		}
		return false, refused(v)
	})
	if err != nil {
		return 0, takeBack(ctx, holdfast, h, v, err)
	}
	return v.Spec.Size.Value(), nil
}

// takeBack takes a size back that was refused, so that the Volume is again as it is declared.
func takeBack(ctx context.Context, c client.Client, h backend.Handle, v *api.Volume, err error) error {
	if v == nil || refused(v) == nil {
		return err
	}
	_, failed := change(ctx, c, h, func(v *api.Volume) error {
		if have := v.Status.Capacity; have != nil && refused(v) != nil && have.Cmp(v.Spec.Size) < 0 {
			v.Spec.Size = have.DeepCopy()
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// change changes a Volume that is there. Somebody else may write to it at the same time.
func change(
	ctx context.Context, c client.Client, h backend.Handle, how func(v *api.Volume) error,
) (v *api.Volume, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if v, err = find(ctx, c, h); err == nil && v == nil {
			err = missing(h)
		}
		if err != nil {
			return err
		}
		was := v.DeepCopy()
		if err := how(v); err != nil {
			return err
		}
		return patch(ctx, c, v, was)
	})
	return v, told(err)
}

// patch writes what has changed of a Volume, if anything has.
func patch(ctx context.Context, c client.Client, v, was *api.Volume) error {
	p := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if text, err := client.MergeFrom(was).Data(v); err != nil || string(text) == "{}" {
		return err
	}
	return c.Patch(ctx, v, p)
}
