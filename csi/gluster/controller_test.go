package gluster

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

var class = map[string]string{backend.ParameterCluster: "gluster", backend.ParameterNamespace: namespace}

func with(parameters ...string) map[string]string {
	all := map[string]string{backend.ParameterCluster: "gluster", backend.ParameterNamespace: namespace}
	for i := 0; i < len(parameters); i += 2 {
		all[parameters[i]] = parameters[i+1]
	}
	return all
}

func request(name string, bytes int64) backend.Request {
	return backend.Request{Name: name, Bytes: bytes, Parameters: class}
}

func handle(name string) backend.Handle {
	return backend.Handle{Backend: Name, Cluster: "gluster", Pool: namespace, Name: name}
}

func wantCode(t *testing.T, what string, err error, want codes.Code, says ...string) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
	for _, part := range says {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not say %q", what, err, part)
		}
	}
}

func testCreate(t *testing.T, w *world) {
	w.cluster("off", api.StorageGlusterFS, api.StorageOffline)
	w.cluster("ceph", api.StorageCeph, api.StorageOnline)
	for _, tt := range []struct {
		name    string
		request backend.Request
		code    codes.Code
		bytes   int64
		says    []string
	}{
		{name: "whole", request: request("a", 2*gib), bytes: 2 * gib},
		{name: "no size", request: request("b", 0), bytes: backend.DefaultSize},
		{name: "one byte", request: request("c", 1), bytes: smallestSize},
		{name: "rounded up", request: request("d", gib+1), bytes: gib + mib},
		{name: "a name that the API does not take", request: request("E.e", gib), bytes: gib},
		{
			name: "no size fits", request: backend.Request{Name: "n", Bytes: 1, Limit: mib, Parameters: class},
			code: codes.OutOfRange, says: []string{"16.0 MiB", "1.0 MiB"},
		},
		{name: "more than there can be", request: request("n", math.MaxInt64), code: codes.OutOfRange},
		{
			name: "larger than the cluster", request: request("n", 20*gib), code: codes.ResourceExhausted,
			says: []string{"21474836480", "10737418240"},
		},
		{
			name: "no parameters", request: backend.Request{Name: "n"}, code: codes.InvalidArgument,
			says: []string{backend.ParameterCluster, backend.ParameterNamespace},
		},
		{
			name:    "no such cluster",
			request: backend.Request{Name: "n1", Parameters: with(backend.ParameterCluster, "gone")},
			code:    codes.FailedPrecondition, says: []string{"gone", namespace},
		},
		{
			name:    "no such namespace",
			request: backend.Request{Name: "n", Parameters: with(backend.ParameterNamespace, "gone")},
			code:    codes.FailedPrecondition, says: []string{"gone"},
		},
		{
			name: "another storage system", code: codes.InvalidArgument, says: []string{"type ceph"},
			request: backend.Request{Name: "n1", Parameters: with(backend.ParameterCluster, "ceph")},
		},
		{name: "an id that is too long", code: codes.InvalidArgument, says: []string{"128"}, request: backend.Request{
			Name: "pvc-0f0c3a3e-7f6c-4b3f-9a51-0d8f6f3f1c11",
			Parameters: with(backend.ParameterCluster, strings.Repeat("c", 63),
				backend.ParameterNamespace, strings.Repeat("n", 63)),
		}},
		{
			name: "OFFLINE", request: backend.Request{Name: "n1", Parameters: with(backend.ParameterCluster, "off")},
			code: codes.Unavailable, says: []string{"OFFLINE", "two nodes are disconnected"},
		},
		{
			name: "no such durability", request: backend.Request{Name: "n", Parameters: with(ParameterDurability, "raid")},
			code: codes.InvalidArgument, says: []string{"raid", "disperse4+2"},
		},
		{
			name: "a durability that the API refuses", code: codes.InvalidArgument, says: []string{"split-brain"},
			request: backend.Request{Name: "n", Parameters: with(ParameterDurability, "replicate2")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // each call may be made again
				h, bytes, err := w.controller().Create(t.Context(), nil, tt.request)
				wantCode(t, "create", err, tt.code, tt.says...)
				if err == nil && (bytes != tt.bytes || h != handle(volumeName(tt.request.Name))) {
					t.Errorf("got %s with %d bytes, want %d", h, bytes, tt.bytes)
				}
			}
		})
	}
	for _, name := range []string{"n", "n1"} {
		if v := w.volume(name); v != nil {
			t.Errorf("a Volume that was refused is left: %v", v.Spec)
		}
	}
	v := w.volume("a")
	if v.Spec.SizePolicy != api.SizeEnforced || v.Spec.DeletionPolicy != api.DeletionWipe {
		t.Errorf("the Volume is declared as %+v", v.Spec)
	}
}

func TestDurability(t *testing.T) {
	for text, want := range map[string]*api.VolumeDurability{
		"": nil, "arbiter": {Arbiter: &api.VolumeArbiter{}}, "distribute": {Distribute: &api.VolumeDistribute{}},
		"replicate3":  {Replicate: &api.VolumeReplicate{Count: 3}},
		"disperse4+2": {Disperse: &api.VolumeDisperse{Data: 4, Redundancy: 2}},
	} {
		if got, err := durabilityOf(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// The Volumes of people are not the driver's.
func testVolumesOfOthers(t *testing.T, w *world) {
	c := w.controller()
	w.must(w.admin.Create(t.Context(), &api.Volume{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"},
		Spec:       api.VolumeSpec{Cluster: "gluster", Size: resource.MustParse("1Gi")},
	}))
	_, _, err := c.Create(t.Context(), nil, request("mine", gib))
	wantCode(t, "create", err, codes.AlreadyExists)
	_, err = c.Grow(t.Context(), nil, handle("mine"), 2*gib)
	wantCode(t, "grow", err, codes.FailedPrecondition)
	wantCode(t, "delete", c.Delete(t.Context(), nil, handle("mine")), codes.FailedPrecondition)
	if w.volume("mine").DeletionTimestamp != nil {
		t.Error("the Volume is being deleted")
	}
	_, _, err = c.Create(t.Context(), nil, request("a", gib))
	w.must(err)
	_, _, err = c.Create(t.Context(), nil, request("a", 2*gib))
	wantCode(t, "another size", err, codes.AlreadyExists)
	_, _, err = c.Create(t.Context(), nil, backend.Request{
		Name: "a", Bytes: gib,
		Parameters: with(ParameterDurability, "arbiter"),
	})
	wantCode(t, "another durability", err, codes.AlreadyExists)
}

// While nobody answers, each call says so in time, and succeeds when it is made again.
func testServersAreSilent(t *testing.T, w *world) {
	c := w.controller()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	h := handle("a")
	for _, call := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"create", func(ctx context.Context) error { _, _, err := c.Create(ctx, nil, request("a", gib)); return err }},
		{"grow", func(ctx context.Context) error { _, err := c.Grow(ctx, nil, h, 2*gib); return err }},
		{"delete", func(ctx context.Context) error { return c.Delete(ctx, nil, h) }},
	} {
		w.set(10*gib, true)
		wantCode(t, call.name, call.do(soon()), codes.DeadlineExceeded, "waits")
		wantCode(t, call.name, call.do(soon()), codes.DeadlineExceeded, "waits")
		w.set(10*gib, false)
		wantCode(t, call.name+" again", call.do(t.Context()), codes.OK)
	}
	if v := w.volume("a"); v != nil {
		t.Errorf("left: %v", v.Status)
	}
}

func testGrow(t *testing.T, w *world) {
	c := w.controller()
	_, _, err := c.Create(t.Context(), nil, request("a", gib))
	w.must(err)
	for _, tt := range []struct {
		bytes, want int64
		code        codes.Code
	}{
		{2 * gib, 2 * gib, codes.OK},
		{gib, 2 * gib, codes.OK},
		{20 * gib, 0, codes.ResourceExhausted},
		{20 * gib, 0, codes.ResourceExhausted},
		{3*gib - 1, 3 * gib, codes.OK},
	} {
		got, err := c.Grow(t.Context(), nil, handle("a"), tt.bytes)
		wantCode(t, "grow", err, tt.code)
		if got != tt.want {
			t.Errorf("grown to %d: got %d, want %d", tt.bytes, got, tt.want)
		}
	}
	if v := w.volume("a"); v.Spec.Size.Value() != 3*gib || stalled(v) {
		t.Errorf("it is declared with %v, and is %+v", v.Spec.Size, v.Status)
	}
	_, err = c.Grow(t.Context(), nil, handle("gone"), gib)
	wantCode(t, "a volume that is gone", err, codes.NotFound)
}

func testPublish(t *testing.T, w *world) {
	const (
		shared = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
		alone  = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	)
	c := w.controller()
	h, _, err := c.Create(t.Context(), nil, request("a", gib))
	w.must(err)
	for _, tt := range []struct {
		name string
		a    backend.Attachment
		code codes.Code
	}{
		{"the first", backend.Attachment{Node: "n1", Mode: shared}, codes.OK},
		{"the first again", backend.Attachment{Node: "n1", Mode: shared}, codes.OK},
		{"a second", backend.Attachment{Node: "n2", Mode: shared}, codes.OK},
		{"one that wants it alone", backend.Attachment{Node: "n3", Mode: alone}, codes.FailedPrecondition},
		{"of the two", backend.Attachment{Node: "n2", Mode: alone}, codes.FailedPrecondition},
	} {
		got, err := c.Publish(t.Context(), nil, h, tt.a)
		wantCode(t, tt.name, err, tt.code)
		if err == nil && (got[contextServers] != "10.0.0.1,10.0.0.2,10.0.0.3" || got[contextVolume] != "a") {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	wantCode(t, "delete", c.Delete(t.Context(), nil, h), codes.FailedPrecondition, "n1, n2")
	w.must(c.Unpublish(t.Context(), nil, h, "n1"), c.Unpublish(t.Context(), nil, h, "n1"))
	_, err = c.Publish(t.Context(), nil, h, backend.Attachment{Node: "n2", Mode: alone})
	w.must(err)
	_, err = c.Publish(t.Context(), nil, h, backend.Attachment{Node: "n1", Mode: shared})
	wantCode(t, "beside one that has it alone", err, codes.FailedPrecondition, "n2")
	w.must(c.Unpublish(t.Context(), nil, h, ""), c.Delete(t.Context(), nil, h), c.Delete(t.Context(), nil, h))
	_, err = c.Publish(t.Context(), nil, h, backend.Attachment{Node: "n1", Mode: alone})
	wantCode(t, "publish what is gone", err, codes.NotFound)
	wantCode(t, "unpublish what is gone", c.Unpublish(t.Context(), nil, h, "n1"), codes.OK)
}
