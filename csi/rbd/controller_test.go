package rbd

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

const gib = 1 << 30

func request(name string, bytes int64) backend.Request {
	return backend.Request{Name: name, Bytes: bytes, Parameters: map[string]string{ParameterPool: "images"}}
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
}

func TestCreate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request backend.Request
		secrets backend.Secrets
		quota   int64
		code    codes.Code
		bytes   int64
		says    []string
	}{
		{name: "whole", request: request("a", 2*gib), bytes: 2 * gib},
		{name: "no size", request: request("a", 0), bytes: backend.DefaultSize},
		{name: "one byte", request: request("a", 1), bytes: smallestSize},
		{name: "rounded up", request: request("a", gib+1), bytes: gib + mib},
		{
			name: "no size fits", request: backend.Request{Name: "a", Bytes: 1, Limit: mib}, code: codes.OutOfRange,
			says: []string{"16.0 MiB", "1.0 MiB"},
		},
		{
			name: "larger than the pool", request: request("a", 20*gib), code: codes.ResourceExhausted,
			says: []string{"20.0 GiB", "10.0 GiB", "overcommit"},
		},
		{
			name: "larger than the quota", request: request("a", 3*gib), quota: 3 * gib,
			code: codes.ResourceExhausted, says: []string{"3.0 GiB", "2.0 GiB"},
		},
		{
			name: "overcommitted", bytes: 20 * gib,
			request: backend.Request{
				Name: "a", Bytes: 20 * gib,
				Parameters: map[string]string{ParameterPool: "images", conn.ParameterOvercommit: "true"},
			},
		},
		{
			name: "no such pool", request: backend.Request{
				Name:       "a",
				Parameters: map[string]string{ParameterPool: "gone"},
			}, code: codes.InvalidArgument,
			says: []string{`"gone"`},
		},
		{
			name: "no Secret", request: request("a", gib), secrets: backend.Secrets{}, code: codes.InvalidArgument,
			says: []string{"fsid"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCeph()
			c.quota = tt.quota
			if tt.secrets == nil {
				tt.secrets = secrets
			}
			for range 2 { // each call may be made again
				h, bytes, err := c.controller(t).Create(t.Context(), tt.secrets, tt.request)
				wantCode(t, "create", err, tt.code)
				for _, part := range tt.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
				if err == nil && (bytes != tt.bytes || h.String() != "rbd/c1/2/a") {
					t.Errorf("got %s with %d bytes, want %d", h, bytes, tt.bytes)
				}
			}
		})
	}
}

func TestCreate_takesOneSizeForAName(t *testing.T) {
	c := newCeph().controller(t)
	if _, _, err := c.Create(t.Context(), secrets, request("a", gib)); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.Create(t.Context(), secrets, request("a", 2*gib))
	wantCode(t, "larger", err, codes.AlreadyExists)
}

func TestPublish_isForOneNode(t *testing.T) {
	ceph := newCeph()
	c := ceph.controller(t)
	h, _, err := c.Create(t.Context(), secrets, request("a", gib))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := c.Publish(t.Context(), secrets, h, backend.Attachment{Node: "n1"})
		if err != nil || got[contextPool] != "images" || got[contextMons] != secrets[backend.SecretMons] {
			t.Errorf("got %v, %v", got, err)
		}
	}
	_, err = c.Publish(t.Context(), secrets, h, backend.Attachment{Node: "n2"})
	wantCode(t, "another node", err, codes.FailedPrecondition)
	wantCode(t, "delete", c.Delete(t.Context(), secrets, h), codes.FailedPrecondition)

	images := rbd.In(ceph, 2)
	if err := images.SetNote(t.Context(), "a", noteClient, "10.0.0.2:0/1"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "unpublish an open one", c.Unpublish(t.Context(), secrets, h, "n1"), codes.FailedPrecondition)
	wantCode(t, "unpublish of another node", c.Unpublish(t.Context(), secrets, h, "n2"), codes.OK)
	if note, err := images.Note(t.Context(), "a", noteNode); err != nil || note != "n1" {
		t.Errorf("the note of n1 is %q, %v", note, err)
	}
	if err := images.RemoveNote(t.Context(), "a", noteClient); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "unpublish", c.Unpublish(t.Context(), secrets, h, "n1"), codes.OK)
	end := ceph.Watch(2, "a", rbd.Watcher{Address: "10.0.0.9:0/3"})
	err = c.Delete(t.Context(), secrets, h)
	wantCode(t, "delete an open one", err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), "10.0.0.9:0/3") {
		t.Errorf("%q does not name the client", err)
	}
	end()
	wantCode(t, "delete", c.Delete(t.Context(), secrets, h), codes.OK)
	wantCode(t, "unpublish what is gone", c.Unpublish(t.Context(), secrets, h, "n1"), codes.OK)
	_, err = c.Publish(t.Context(), secrets, h, backend.Attachment{Node: "n1"})
	wantCode(t, "publish what is gone", err, codes.NotFound)
}

func TestGrow(t *testing.T) {
	ceph := newCeph()
	c := ceph.controller(t)
	h, _, err := c.Create(t.Context(), secrets, request("a", gib))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		bytes, want int64
		code        codes.Code
	}{{2 * gib, 2 * gib, codes.OK}, {gib, 2 * gib, codes.OK}, {20 * gib, 0, codes.ResourceExhausted}} {
		got, err := c.Grow(t.Context(), secrets, h, tt.bytes)
		wantCode(t, "grow", err, tt.code)
		if got != tt.want {
			t.Errorf("grown to %d: got %d, want %d", tt.bytes, got, tt.want)
		}
	}
	other := h
	other.Cluster = "c2"
	_, err = c.Grow(t.Context(), secrets, other, gib)
	wantCode(t, "a volume of another cluster", err, codes.FailedPrecondition)
}

// TestController_isCutOff has the answer to each command be lost, before it took effect and after
// it. The same calls, made again, come to the same.
func TestController_isCutOff(t *testing.T) {
	for at := 1; ; at++ {
		ceph := newCeph()
		c, left := ceph.controller(t), at
		ceph.cut = func() bool { left--; return left == 0 }
		life(t, c)
		if left > 0 {
			t.Logf("there are %d points", at-1)
			if at < 30 {
				t.Errorf("there are only %d points", at-1)
			}
			return
		}
		ceph.cut = nil
		trash, err := rbd.In(ceph, 2).Trash(t.Context())
		if names := ceph.Names(2); len(names) > 0 || len(trash) > 0 || err != nil {
			t.Fatalf("cut off at point %d: left: %v, in the trash %v, %v", at, names, trash, err)
		}
	}
}

// life is that of a volume. A call that gets no answer is made again.
func life(t *testing.T, c *Controller) {
	t.Helper()
	again := func(what string, call func(ctx context.Context) error) {
		err := call(t.Context())
		if status.Code(err) == codes.Unavailable {
			err = call(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	h := backend.Handle{Backend: Name, Cluster: "c1", Pool: "2", Name: "a"}
	r := request("a", gib)
	again("create", func(ctx context.Context) error { _, _, err := c.Create(ctx, secrets, r); return err })
	on := backend.Attachment{Node: "n1"}
	again("publish", func(ctx context.Context) error { _, err := c.Publish(ctx, secrets, h, on); return err })
	again("grow", func(ctx context.Context) error { _, err := c.Grow(ctx, secrets, h, 2*gib); return err })
	again("unpublish", func(ctx context.Context) error { return c.Unpublish(ctx, secrets, h, "n1") })
	again("delete", func(ctx context.Context) error { return c.Delete(ctx, secrets, h) })
}

// A Create that was cut off in librbd leaves a name without an image.
func TestCreate_overHalfAnImage(t *testing.T) {
	ceph := newCeph()
	creates := 0
	ceph.Fail(func(prefix string) error {
		if prefix == "rbd create" {
			if creates++; creates == 1 {
				return &rados.CommandError{Prefix: prefix, Errno: 17}
			}
		}
		return nil
	})
	if _, _, err := ceph.controller(t).Create(t.Context(), secrets, request("a", gib)); err != nil || creates != 2 {
		t.Errorf("%d creates: %v", creates, err)
	}
}
