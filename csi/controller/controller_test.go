package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// none is a back end that has no volumes, and is asked for none: what a test sends is refused before.
type none struct{ backend.Controller }

func (none) Name() string { return "none" }

func (none) Modes() backend.Modes {
	return backend.Modes{csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}
}

// other is a second one.
type other struct{ none }

func (other) Name() string { return "other" }

type nodes struct{}

func (nodes) Has(context.Context, string) (bool, error) { return false, nil }

func mounted(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

func TestCreateVolume_refuses(t *testing.T) {
	good := mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)
	for _, tt := range []struct {
		name   string
		change func(r *csi.CreateVolumeRequest)
		code   codes.Code
		says   string
	}{
		{
			"no back end of that name", func(r *csi.CreateVolumeRequest) { r.Parameters["backend"] = "x" },
			codes.InvalidArgument, "none, other",
		},
		{"an access mode", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
		}, codes.InvalidArgument, "MULTI_NODE_MULTI_WRITER"},
		{"a block device", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{}}
		}, codes.InvalidArgument, "volumeMode"},
		{
			"a copy", func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} },
			codes.InvalidArgument, "dataSource",
		},
		{"a limit below the least", func(r *csi.CreateVolumeRequest) {
			r.CapacityRange = &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1}
		}, codes.OutOfRange, "2"},
		{"less than nothing", func(r *csi.CreateVolumeRequest) {
			r.CapacityRange = &csi.CapacityRange{RequiredBytes: -1}
		}, codes.OutOfRange, "-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &csi.CreateVolumeRequest{
				Name: "a", VolumeCapabilities: []*csi.VolumeCapability{good}, Parameters: map[string]string{"backend": "none"},
			}
			tt.change(r)
			_, err := New(nodes{}, none{}, other{}).CreateVolume(t.Context(), r)
			if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v and %q", err, tt.code, tt.says)
			}
		})
	}
}

// An id that this driver never made is of no volume.
func TestForeignID(t *testing.T) {
	s := New(nodes{}, none{})
	if _, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "x/y"}); err != nil {
		t.Errorf("delete: %v", err)
	}
	unpublish := &csi.ControllerUnpublishVolumeRequest{VolumeId: "x/y", NodeId: "n"}
	if _, err := s.ControllerUnpublishVolume(t.Context(), unpublish); err != nil {
		t.Errorf("unpublish: %v", err)
	}
	_, err := s.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
		VolumeId: "x/y", CapacityRange: &csi.CapacityRange{RequiredBytes: 1},
	})
	if status.Code(err) != codes.NotFound {
		t.Errorf("expand: %v", err)
	}
}

// states are clusters by name, with what is said of those that are OFFLINE.
type states map[string]string

func (s states) Offline(_ context.Context, namespace, name string) (string, error) {
	said, ok := s[namespace+"/"+name]
	switch {
	case said == "?":
		return "", errors.New("no answer")
	case !ok:
		return "", ErrNoCluster
	}
	return said, nil
}

// made is a back end that makes each volume.
type made struct{ none }

func (made) Create(context.Context, backend.Secrets, backend.Request) (backend.Handle, int64, error) {
	return backend.Handle{Backend: "none", Cluster: "c", Pool: "p", Name: "a"}, 1, nil
}

// A claim waits while its cluster is OFFLINE, with the words of the StorageStatus.
func TestCreateVolume_offline(t *testing.T) {
	all := states{"storage/off": "2 of 3 mons are down", "storage/on": "", "storage/x": "?"}
	s := New(nodes{}, made{}).WithClusters(all)
	for _, tt := range []struct {
		cluster string
		code    codes.Code
		says    string
	}{
		{"on", codes.OK, ""},
		{"", codes.OK, ""},
		{"off", codes.Unavailable, "2 of 3 mons are down"},
		{"x", codes.Unavailable, "no answer"},
		{"gone", codes.FailedPrecondition, "storage/gone"},
	} {
		good := mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)
		r := &csi.CreateVolumeRequest{
			Name: "a", VolumeCapabilities: []*csi.VolumeCapability{good},
			Parameters: map[string]string{backend.ParameterNamespace: "storage", backend.ParameterCluster: tt.cluster},
		}
		_, err := s.CreateVolume(t.Context(), r)
		if status.Code(err) != tt.code || tt.says != "" && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("cluster %q: got %v, want %v and %q", tt.cluster, err, tt.code, tt.says)
		}
	}
}
