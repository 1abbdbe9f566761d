package gluster

import (
	"errors"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/test/home"
)

const (
	shared  = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	readers = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	alone   = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
)

// volume is one that a test has made, with the calls that Kubernetes does for a pod.
type volume struct {
	*bed

	id, name   string
	mode       csi.VolumeCapability_AccessMode_Mode
	attachment map[string]map[string]string
}

func as(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

func asked(name string, bytes int64, mode csi.VolumeCapability_AccessMode_Mode) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		VolumeCapabilities: []*csi.VolumeCapability{as(mode)}, Parameters: class,
	}
}

func (b *bed) create(name string, bytes int64, mode csi.VolumeCapability_AccessMode_Mode) *volume {
	b.t.Helper()
	r, err := b.controller.CreateVolume(b.within(callTimeout), asked(name, bytes, mode))
	b.must(err)
	return &volume{
		bed: b, id: r.GetVolume().GetVolumeId(), name: name, mode: mode, attachment: map[string]map[string]string{},
	}
}

// isLater says whether an error asks for the same call again.
func isLater(err error) bool {
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return true
	}
	return false
}

// createAgain makes the call of create until it is not to be made again.
func (b *bed) createAgain(name string, bytes int64, mode csi.VolumeCapability_AccessMode_Mode) *volume {
	b.t.Helper()
	home.Await(b.t, "the volume to be made", func() error {
		_, err := b.controller.CreateVolume(b.within(callTimeout), asked(name, bytes, mode))
		if err != nil && !isLater(err) {
			b.t.Fatal(err)
		}
		return err
	})
	return b.create(name, bytes, mode)
}

func (v *volume) delete() error {
	_, err := v.controller.DeleteVolume(v.within(callTimeout), &csi.DeleteVolumeRequest{VolumeId: v.id})
	return err
}

func (v *volume) publish(node string) error {
	r, err := v.controller.ControllerPublishVolume(v.within(callTimeout), &csi.ControllerPublishVolumeRequest{
		VolumeId: v.id, NodeId: node, VolumeCapability: as(v.mode),
	})
	v.attachment[node] = r.GetPublishContext()
	return err
}

func (v *volume) unpublish(node string) error {
	_, err := v.controller.ControllerUnpublishVolume(v.within(callTimeout), &csi.ControllerUnpublishVolumeRequest{
		VolumeId: v.id, NodeId: node,
	})
	return err
}

// The paths on a node.
func (v *volume) stagingPath() string { return "/var/lib/kubelet/staging-" + v.name }
func (v *volume) target() string      { return "/var/lib/kubelet/target-" + v.name }

func (v *volume) staging(node string) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: v.id, PublishContext: v.attachment[node], StagingTargetPath: v.stagingPath(),
		VolumeCapability: as(v.mode),
	}
}

func (v *volume) stage(node string) error {
	_, err := v.nodes[node].NodeStageVolume(v.within(callTimeout), v.staging(node))
	return err
}

// mount stages a volume, and shows it to a pod.
func (v *volume) mount(node string) error {
	if err := v.stage(node); err != nil {
		return err
	}
	_, err := v.nodes[node].NodePublishVolume(v.within(callTimeout), &csi.NodePublishVolumeRequest{
		VolumeId: v.id, PublishContext: v.attachment[node], StagingTargetPath: v.stagingPath(),
		TargetPath: v.target(), VolumeCapability: as(v.mode),
	})
	return err
}

func (v *volume) unmount(node string) error {
	_, err := v.nodes[node].NodeUnpublishVolume(v.within(callTimeout), &csi.NodeUnpublishVolumeRequest{
		VolumeId: v.id, TargetPath: v.target(),
	})
	_, unstage := v.nodes[node].NodeUnstageVolume(v.within(callTimeout), &csi.NodeUnstageVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.stagingPath(),
	})
	return errors.Join(err, unstage)
}

// grow makes a mounted volume larger.
func (v *volume) grow(bytes int64) {
	v.t.Helper()
	for range 2 {
		r, err := v.controller.ControllerExpandVolume(v.within(callTimeout), &csi.ControllerExpandVolumeRequest{
			VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		})
		v.must(err)
		if r.GetCapacityBytes() != bytes {
			v.t.Errorf("the controller grew it to %v", r)
		}
	}
	for node := range v.attachment {
		_, err := v.nodes[node].NodeExpandVolume(v.within(callTimeout), &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.stagingPath(),
			CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		})
		v.must(err)
	}
}

func (v *volume) condition(node string) *csi.VolumeCondition {
	v.t.Helper()
	r, err := v.nodes[node].NodeGetVolumeStats(v.within(callTimeout), &csi.NodeGetVolumeStatsRequest{
		VolumeId: v.id, VolumePath: v.target(),
	})
	v.must(err)
	return r.GetVolumeCondition()
}

// stats fails unless the condition on a node is as it has to be.
func (v *volume) stats(node string, abnormal bool) {
	v.t.Helper()
	if c := v.condition(node); c.GetAbnormal() != abnormal {
		v.t.Errorf("on %s: %v", node, c)
	}
}

// fill writes random data, of so many MiB, to a file, and returns its checksum.
func (v *volume) fill(number int, name string, size int) string {
	v.t.Helper()
	h := v.Lab.Host(number)
	path := v.target() + "/" + name
	h.Run(v.t, v.t.Context(), "sh", "-c", "head -c "+strconv.Itoa(size)+"M /dev/urandom >"+path+" && sync "+path)
	return v.sum(number, name)
}

func (v *volume) sum(number int, name string) string {
	v.t.Helper()
	h := v.Lab.Host(number)
	return h.Run(v.t, v.t.Context(), "sha256sum", v.target()+"/"+name)
}
