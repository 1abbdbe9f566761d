package ceph

import (
	"cmp"
	"path"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// volumePrefix is how the identities of logical volumes begin, which stay the same as long as these are there (package agent/service/lvm).
const volumePrefix = "dm-LVM-"

// labelParts are what the labels of an OSD's devices call what is on them, by the names of the devices, in the order in which an OSD has them.
var labelParts = []struct{ device, part string }{{DeviceBlock, ""}, {DeviceDB, "db"}, {DeviceWAL, "wal"}}

// devicesOf are the devices that an OSD has by its own word, known by the labels on them, and how they are told.
func (x *adopter) devicesOf(d *ClusterDaemon, h *api.Host) (devices []api.DaemonDevice, text string) {
	if d.Store != "" && d.Store != "bluestore" {
		x.problem("%s has the object store %s: only BlueStore is run. Make it anew as BlueStore ('ceph osd destroy', then 'ceph-volume') first", d.Label(), d.Store)
		return nil, cmp.Or(d.Path, "?")
	}
	var texts []string
	for _, want := range labelParts {
		if want.part != "" && !slices.Contains(d.Apart, want.device) {
			continue
		}
		dev := x.deviceOf(d, h, want.device, want.part)
		if dev == nil {
			return nil, cmp.Or(d.Path, "?")
		}
		devices = append(devices, api.DaemonDevice{Name: want.device, ID: dev.ID})
		texts = append(texts, tellDevice(want.part, dev, h))
	}
	return devices, strings.Join(texts, ", ")
}

// deviceOf is the one device with the OSD's label for a part of it; nil where that is refused.
func (x *adopter) deviceOf(d *ClusterDaemon, h *api.Host, name, part string) *api.Device {
	var at []*api.Device
	for i := range h.Status.Devices {
		if dev := &h.Status.Devices[i]; dev.Ceph != nil && strings.EqualFold(dev.Ceph.OSDUUID, d.UUID) && dev.Ceph.Part == part {
			at = append(at, dev)
		}
	}
	switch {
	case len(at) == 0 && part == "":
		x.problem("%s on %s: no device of the host has its label (uuid %s). An OSD whose data is in a file, and not on a disk, a partition or a logical volume, is not taken over", d.Label(), h.Name, d.UUID)
	case len(at) == 0:
		x.problem("%s on %s: no device of the host has the label of its %s (uuid %s). One that is in a file, and not on a disk, a partition or a logical volume, is not taken "+
			"over: bring it back to the main device ('ceph-bluestore-tool bluefs-bdev-migrate') or replace the OSD first", d.Label(), h.Name, name, d.UUID)
	case len(at) > 1:
		x.problem("%s on %s: %s and %s have the same label (uuid %s): which of them is the OSD's?", d.Label(), h.Name, at[0].ID, at[1].ID, d.UUID)
	case at[0].Kind == api.DeviceRaid, at[0].Kind == api.DeviceMapped && !strings.HasPrefix(at[0].ID, volumePrefix):
		x.problem("%s on %s has its %s on %s (%s), which is not taken over: of what the kernel builds of other devices, only logical volumes are. Replace it by an OSD on the whole "+
			"disk, a partition or a logical volume, or leave the cluster as it is", d.Label(), h.Name, name, at[0].Path, at[0].ID)
	case strings.HasPrefix(at[0].ID, "unstable-"):
		x.problem("%s on %s: its device %s has no identity that stays (WWN, serial number, partition UUID)", d.Label(), h.Name, at[0].Path)
	default:
		return at[0]
	}
	return nil
}

// tellDevice names a device as people know it: a logical volume by the disks that it lies on.
func tellDevice(part string, dev *api.Device, h *api.Host) string {
	text := dev.ID + " (" + dev.Path + ")"
	if strings.HasPrefix(dev.ID, volumePrefix) {
		var below []string
		for i := range h.Status.Devices {
			if disk := &h.Status.Devices[i]; slices.Contains(disk.Holders, path.Base(dev.Path)) {
				below = append(below, disk.ID)
			}
		}
		text = dev.Path + ", LVM on " + cmp.Or(strings.Join(below, " and "), "disks that are not known")
	}
	if part != "" {
		text = part + ": " + text
	}
	return text
}
