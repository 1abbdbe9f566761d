package gluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// testCutOff has the answer to each request of the driver be lost, before it took effect and after
// it. The same calls, made again, come to the same.
func testCutOff(t *testing.T, w *world) {
	for at := int64(1); ; at++ {
		var points atomic.Int64
		c := &Controller{API: func() (client.WithWatch, error) {
			return cutting(w.driver, func() bool { return points.Add(1) == at }), nil
		}}
		live(t, c)
		if v := w.volume("a"); v != nil {
			t.Fatalf("cut off at point %d: left: %+v", at, v)
		}
		if points.Load() < at {
			t.Logf("there are %d points", at-1)
			if at < 30 {
				t.Errorf("there are only %d points", at-1)
			}
			return
		}
	}
}

// live is the life of a volume. A call that gets no answer is made again.
func live(t *testing.T, c *Controller) {
	t.Helper()
	again := func(what string, call func(ctx context.Context) error) {
		t.Helper()
		err := call(t.Context())
		if status.Code(err) == codes.Unavailable {
			err = call(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	h, on := handle("a"), backend.Attachment{Node: "n1"}
	again("create", func(ctx context.Context) error { _, _, err := c.Create(ctx, nil, request("a", gib)); return err })
	again("publish", func(ctx context.Context) error { _, err := c.Publish(ctx, nil, h, on); return err })
	again("grow", func(ctx context.Context) error { _, err := c.Grow(ctx, nil, h, 2*gib); return err })
	again("unpublish", func(ctx context.Context) error { return c.Unpublish(ctx, nil, h, "n1") })
	again("delete", func(ctx context.Context) error { return c.Delete(ctx, nil, h) })
}

var errCut = errors.New("the connection was cut")

// cutting is a client some of whose requests are lost, and the answers to others: cut is asked
// before each request and after it.
func cutting(c client.WithWatch, cut func() bool) client.WithWatch {
	around := func(do func() error) error {
		if cut() {
			return errCut
		}
		err := do()
		if cut() {
			return errCut
		}
		return err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			return around(func() error { return c.Get(ctx, k, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return around(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return around(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return around(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Watch: func(
			ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption,
		) (changes watch.Interface, err error) {
			if cut() {
				return nil, errCut
			}
			return c.Watch(ctx, l, opts...)
		},
	})
}
