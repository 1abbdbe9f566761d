package cephfs

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
)

const gib = 1 << 30

func request(name string, bytes int64) backend.Request {
	return backend.Request{Name: name, Bytes: bytes, Parameters: map[string]string{ParameterFilesystem: "home"}}
}

func overcommitted(r backend.Request) backend.Request {
	r.Parameters = maps.Clone(r.Parameters)
	r.Parameters[conn.ParameterOvercommit] = "true"
	return r
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
		noMDS   bool
		request backend.Request
		code    codes.Code
		bytes   int64
		says    []string
	}{
		{name: "whole", request: request("a", 2*gib), bytes: 2 * gib},
		{name: "no size", request: request("a", 0), bytes: backend.DefaultSize},
		{name: "one byte", request: request("a", 1), bytes: unit},
		{name: "rounded up", request: request("a", gib+1), bytes: gib + unit},
		{
			name: "no size fits", request: backend.Request{Name: "a", Bytes: 1, Limit: mib}, code: codes.OutOfRange,
			says: []string{"4.0 MiB", "1.0 MiB"},
		},
		{
			name: "larger than the pool", request: request("a", 20*gib), code: codes.ResourceExhausted,
			says: []string{"20.0 GiB", "10.0 GiB", "home.data", "overcommit"},
		},
		{name: "overcommitted", request: overcommitted(request("a", 20*gib)), bytes: 20 * gib},
		{
			name: "no such filesystem", request: backend.Request{
				Name: "a", Bytes: 1,
				Parameters: map[string]string{ParameterFilesystem: "other"},
			}, code: codes.InvalidArgument,
			says: []string{`"other"`, "StorageClass"},
		},
		{
			name: "no MDS", noMDS: true, request: request("a", 1), code: codes.Unavailable,
			says: []string{"home", "MDS"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCeph()
			c.inactive = tt.noMDS
			for range 2 { // each call may be made again
				h, bytes, err := c.controller(t).Create(t.Context(), secrets, tt.request)
				wantCode(t, "create", err, tt.code)
				for _, part := range tt.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
				if err == nil && (bytes != tt.bytes || h.String() != "cephfs/c1/3/a") {
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

// A manager that was killed while it made a subvolume leaves directories. What has files is
// somebody's.
func TestCreate_overHalfASubvolume(t *testing.T) {
	for _, half := range []bool{true, false} {
		for used, code := range map[int64]codes.Code{0: codes.OK, 1: codes.AlreadyExists} {
			ceph := newCeph()
			c := ceph.controller(t)
			ceph.group, ceph.volumes["a"] = true, &volume{half: half, used: used, notes: map[string]string{"old": "x"}}
			if half {
				h := backend.Handle{Backend: Name, Cluster: "c1", Pool: "3", Name: "a"}
				wantCode(t, "find", c.Find(t.Context(), secrets, h), codes.NotFound)
			}
			_, _, err := c.Create(t.Context(), secrets, request("a", gib))
			wantCode(t, "create", err, code)
			made := ceph.volumes["a"]
			if made == nil || (code == codes.OK) != (made.quota == gib && len(made.notes) == 0) {
				t.Errorf("with %d bytes in it, it became %v", used, made)
			}
		}
	}
}

var (
	single   = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	multiple = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

func TestPublish(t *testing.T) {
	ceph := newCeph()
	c := ceph.controller(t)
	h, _, err := c.Create(t.Context(), secrets, request("a", gib))
	if err != nil {
		t.Fatal(err)
	}
	publish := func(node string, mode csi.VolumeCapability_AccessMode_Mode, want codes.Code) {
		t.Helper()
		for range 2 {
			got, err := c.Publish(t.Context(), secrets, h, backend.Attachment{Node: node, Mode: mode})
			wantCode(t, "publish", err, want)
			if err == nil && (got[contextPath] != GroupPath+"/a/x" || got[contextMons] != secrets[backend.SecretMons]) {
				t.Errorf("publish: got %v", got)
			}
		}
	}
	publish("n1", multiple, codes.OK)
	publish("n2", multiple, codes.OK)
	publish("n3", single, codes.FailedPrecondition)
	publish("n2", single, codes.FailedPrecondition)
	wantCode(t, "delete", c.Delete(t.Context(), secrets, h), codes.FailedPrecondition)
	wantCode(t, "unpublish", c.Unpublish(t.Context(), secrets, h, "n1"), codes.OK)
	publish("n2", single, codes.OK)
	publish("n1", single, codes.FailedPrecondition)
	publish("n1", multiple, codes.FailedPrecondition)
	wantCode(t, "unpublish all", c.Unpublish(t.Context(), secrets, h, ""), codes.OK)
	ceph.volumes["a"].snapshots = true
	wantCode(t, "delete one with snapshots", c.Delete(t.Context(), secrets, h), codes.FailedPrecondition)
	ceph.volumes["a"].snapshots = false
	wantCode(t, "delete", c.Delete(t.Context(), secrets, h), codes.OK)
	wantCode(t, "unpublish what is gone", c.Unpublish(t.Context(), secrets, h, "n2"), codes.OK)
	publish("n1", multiple, codes.NotFound)
}

func TestGrow(t *testing.T) {
	c := newCeph().controller(t)
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
	h, _, err = c.Create(t.Context(), secrets, overcommitted(request("b", gib)))
	wantCode(t, "create", err, codes.OK)
	_, err = c.Grow(t.Context(), secrets, h, 20*gib)
	wantCode(t, "grow what may promise more", err, codes.OK)
	other := h
	other.Cluster = "c2"
	_, err = c.Grow(t.Context(), secrets, other, gib)
	wantCode(t, "a volume of another cluster", err, codes.FailedPrecondition)
}

// With a filesystem its volumes are gone. While no MDS serves it, nothing is known of them.
func TestFilesystem_isGone(t *testing.T) {
	ceph := newCeph()
	c := ceph.controller(t)
	h, _, err := c.Create(t.Context(), secrets, request("a", gib))
	if err != nil {
		t.Fatal(err)
	}
	calls := func(wantDelete, wantFind codes.Code) {
		t.Helper()
		wantCode(t, "unpublish", c.Unpublish(t.Context(), secrets, h, "n1"), wantDelete)
		wantCode(t, "delete", c.Delete(t.Context(), secrets, h), wantDelete)
		wantCode(t, "find", c.Find(t.Context(), secrets, h), wantFind)
		_, err := c.Grow(t.Context(), secrets, h, 2*gib)
		wantCode(t, "grow", err, wantFind)
	}
	ceph.inactive = true
	calls(codes.Unavailable, codes.Unavailable)
	ceph.gone = true
	calls(codes.OK, codes.NotFound)
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
			if at < 50 {
				t.Errorf("there are only %d points", at-1)
			}
			return
		}
		if left := slices.Collect(maps.Keys(ceph.volumes)); len(left) > 0 {
			t.Fatalf("cut off at point %d: left: %v", at, left)
		}
	}
}

// life is that of a volume. A call that gets no answer is made again.
func life(t *testing.T, c *Controller) {
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
	h := backend.Handle{Backend: Name, Cluster: "c1", Pool: "3", Name: "a"}
	r := overcommitted(request("a", gib))
	again("create", func(ctx context.Context) error { _, _, err := c.Create(ctx, secrets, r); return err })
	for _, node := range []string{"n1", "n2"} {
		again("publish", func(ctx context.Context) error {
			_, err := c.Publish(ctx, secrets, h, backend.Attachment{Node: node, Mode: multiple})
			return err
		})
	}
	again("grow", func(ctx context.Context) error { _, err := c.Grow(ctx, secrets, h, 20*gib); return err })
	for _, node := range []string{"n1", "n2"} {
		again("unpublish", func(ctx context.Context) error { return c.Unpublish(ctx, secrets, h, node) })
	}
	again("delete", func(ctx context.Context) error { return c.Delete(ctx, secrets, h) })
}
