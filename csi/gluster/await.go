package gluster

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

const (
	// patience bounds a call that has no deadline.
	patience = time.Minute
	// margin is how long before its deadline a call is answered, so that the caller hears why the
	// volume waits.
	margin = 3 * time.Second
	// lookAgain is when a Volume is looked at whose changes the API does not tell.
	lookAgain = time.Second
)

// early ends some time before ctx does.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, patience)
	}
	return context.WithDeadline(ctx, end.Add(-min(margin, time.Until(end)/4)))
}

// find returns a Volume, or nil where there is none.
func find(ctx context.Context, c client.Reader, h backend.Handle) (*api.Volume, error) {
	v := &api.Volume{}
	err := c.Get(ctx, nameOf(h), v)
	if err != nil {
		return nil, told(client.IgnoreNotFound(err))
	}
	return v, nil
}

// await looks at a Volume, nil for one that is gone, whenever it changes, until a condition holds or
// fails. It fails when ctx ends, with what Holdfast says of the Volume.
func await(
	ctx context.Context, c client.WithWatch, h backend.Handle, holds func(*api.Volume) (bool, error),
) (*api.Volume, error) {
	changes, err := c.Watch(ctx, &api.VolumeList{}, client.InNamespace(h.Pool),
		client.MatchingFields{"metadata.name": h.Name})
	if err != nil {
		return nil, told(err)
	}
	defer changes.Stop()
	v, done, err := until(ctx, c, h, changes.ResultChan(), holds)
	if done || err != nil && ctx.Err() == nil {
		return v, err
	}
	return nil, late(context.WithoutCancel(ctx), c, h, v)
}

// until looks until the condition is done with, or ctx ends.
func until(
	ctx context.Context, c client.Reader, h backend.Handle, changes <-chan watch.Event,
	holds func(*api.Volume) (bool, error),
) (v *api.Volume, done bool, err error) {
	v, err = find(ctx, c, h)
	for err == nil {
		if done, err = holds(v); err != nil || done {
			return v, done, err
		}
		select {
		case <-ctx.Done():
			return v, false, nil
		case <-time.After(lookAgain):
			v, err = find(ctx, c, h)
		case e, open := <-changes:
			changed, isVolume := e.Object.(*api.Volume)
			switch {
			case !open || e.Type == watch.Error:
				changes = nil // time tells
			case isVolume && changed.Name == h.Name && e.Type == watch.Deleted:
				v = nil
			case isVolume && changed.Name == h.Name:
				v = changed
			}
		}
	}
	return v, false, err
}

// answerTimeout bounds the look at why something is late.
const answerTimeout = time.Second

// late says why a Volume is not as it has to be: what Holdfast says of it, or of its cluster.
func late(ctx context.Context, c client.Reader, h backend.Handle, v *api.Volume) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	why := "the API of Holdfast does not answer"
	if v != nil {
		why = cmp.Or(v.Status.Message, "its state is "+string(cmp.Or(v.Status.State, api.ResourcePending)))
		if said := offline(ctx, c, h); said != "" {
			why = said
		}
	}
	return status.Errorf(codes.DeadlineExceeded, "the volume %s waits: %s; the call is made again", h.Name, why)
}

// offline says in Holdfast's own words that a cluster does not serve; it is empty where it does, or
// where nothing is known.
func offline(ctx context.Context, c client.Reader, h backend.Handle) string {
	s := &api.StorageStatus{}
	if c.Get(ctx, client.ObjectKey{Namespace: h.Pool, Name: h.Cluster}, s) != nil ||
		s.Status.Status != api.StorageOffline {
		return ""
	}
	return "the cluster " + h.Cluster + " is OFFLINE: " + s.Status.Message
}
