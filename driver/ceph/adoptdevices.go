package ceph

import (
	"cmp"
	"path"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// How the identities of what device-mapper builds begin. A logical volume's stays the same as long as it is there (package agent/service/lvm); that of an
// encrypted device in clear is one of its name, and what it lies on stands for it.
const (
	volumePrefix = "dm-LVM-"
	sealedPrefix = "dm-CRYPT-LUKS2-"
)

// labelParts are what the labels of an OSD's devices call what is on them, by the names of the devices, in the order in which an OSD has them.
var labelParts = []struct{ device, part string }{{DeviceBlock, ""}, {DeviceDB, "db"}, {DeviceWAL, "wal"}}

// devicesOf are the devices that an OSD has by its own word, known by the labels on them, and how they are told.
func (x *adopter) devicesOf(d *ClusterDaemon, h *api.Host) (devices []api.DaemonDevice, text string) {
	unknown := cmp.Or(d.Path, "?")
	if d.Store != "" && d.Store != "bluestore" {
		x.problem("%s uses the object store %s: only BlueStore is supported; recreate it as BlueStore first ('ceph osd "+
			"destroy', then 'ceph-volume')", d.Label(), d.Store)
		return nil, unknown
	}
	var texts []string
	for _, want := range labelParts {
		if want.part != "" && !slices.Contains(d.Apart, want.device) {
			continue
		}
		dev := x.labelled(d, h, want.device, want.part)
		if dev == nil {
			return nil, unknown
		}
		lies, secret := x.standsFor(d, h, dev)
		if lies == nil || !x.checkDevice(d, h, want.device, lies) {
			return nil, unknown
		}
		devices = append(devices, api.DaemonDevice{Name: want.device, ID: lies.ID, KeySecret: secret})
		texts = append(texts, tellDevice(want.part, lies, secret != "", h))
	}
	if sealed := devices[0].KeySecret; slices.ContainsFunc(devices, func(dev api.DaemonDevice) bool { return dev.KeySecret != sealed }) {
		x.problem("cannot adopt %s on %s: only some of its devices are encrypted; replace the OSD first", d.Label(), h.Name)
		return nil, unknown
	}
	return devices, strings.Join(texts, ", ")
}

// labelled is the one device with the OSD's label for a part of it; nil where that is refused. Of one that is encrypted it is what is seen in clear; what
// others are built of, such as the halves of a mirror, is none.
func (x *adopter) labelled(d *ClusterDaemon, h *api.Host, name, part string) *api.Device {
	var at []*api.Device
	for i := range h.Status.Devices {
		if dev := &h.Status.Devices[i]; dev.Ceph != nil && strings.EqualFold(dev.Ceph.OSDUUID, d.UUID) && dev.Ceph.Part == part && !sealed(dev) && len(dev.Holders) == 0 {
			at = append(at, dev)
		}
	}
	switch {
	case len(at) == 0 && part == "":
		x.problem("cannot adopt %s on %s: no device of the host has its label (uuid %s); an OSD must be on a disk, a "+
			"partition or a logical volume, not in a file", d.Label(), h.Name, d.UUID)
	case len(at) == 0:
		x.problem("cannot adopt %s on %s: no device of the host has the label of its %s (uuid %s), which must not be in "+
			"a file; move it to the main device ('ceph-bluestore-tool bluefs-bdev-migrate') or replace the OSD first",
			d.Label(), h.Name, name, d.UUID)
	case len(at) > 1:
		x.problem("cannot adopt %s on %s: %s and %s have the same label (uuid %s); detach the copy",
			d.Label(), h.Name, at[0].ID, at[1].ID, d.UUID)
	default:
		return at[0]
	}
	return nil
}

// standsFor is the device that a Daemon has for one that is seen: itself; or what it lies on, and the Secret with the key, where it is encrypted. It is nil
// where that is refused.
func (x *adopter) standsFor(d *ClusterDaemon, h *api.Host, dev *api.Device) (lies *api.Device, secret string) {
	if !strings.HasPrefix(dev.ID, sealedPrefix) {
		return dev, ""
	}
	below := beneath(dev, h)
	switch {
	case len(below) != 1:
		x.problem("cannot adopt %s on %s: %s is encrypted, and the agent does not find the device under it",
			d.Label(), h.Name, dev.Path)
	case x.Facts.DeviceKeys[strings.ToLower(d.UUID)] == "":
		x.problem("cannot adopt %s on %s: %s is encrypted, and the mons do not have its key (dm-crypt/osd/%s/luks in "+
			"'ceph config-key ls'), which every boot needs; replace the OSD first",
			d.Label(), h.Name, dev.Path, strings.ToLower(d.UUID))
	default:
		return below[0], secretName(x.Name, d.Label())
	}
	return nil, ""
}

// checkDevice refuses a device that could be another one after a boot, or of which too little is known.
func (x *adopter) checkDevice(d *ClusterDaemon, h *api.Host, name string, dev *api.Device) bool {
	switch {
	case strings.HasPrefix(dev.ID, "dm-CRYPT-LUKS1-"):
		x.problem("cannot adopt %s on %s: its %s is encrypted with LUKS 1, whose header cannot hold the OSD's id; stop "+
			"the OSD, close the device, run 'cryptsetup convert --type luks2' (keeps data and key), and start the OSD",
			d.Label(), h.Name, name)
	case dev.Kind == api.DeviceRaid, dev.Kind == api.DeviceMapped && !strings.HasPrefix(dev.ID, volumePrefix):
		x.problem("cannot adopt %s on %s: its %s is on %s (%s); of device-mapper and md devices only logical volumes and "+
			"LUKS are supported. Replace the OSD by one on a disk, a partition or a logical volume first",
			d.Label(), h.Name, name, dev.Path, dev.ID)
	case strings.HasPrefix(dev.ID, "unstable-"):
		x.problem("cannot adopt %s on %s: its device %s has no persistent id (WWN, serial number, partition UUID)",
			d.Label(), h.Name, dev.Path)
	default:
		return true
	}
	return false
}

// beneath are the devices that one is built of.
func beneath(dev *api.Device, h *api.Host) (below []*api.Device) {
	for i := range h.Status.Devices {
		if disk := &h.Status.Devices[i]; slices.Contains(disk.Holders, path.Base(dev.Path)) {
			below = append(below, disk)
		}
	}
	return below
}

// tellDevice names a device as people know it: a logical volume by the disks that it lies on.
func tellDevice(part string, dev *api.Device, encrypted bool, h *api.Host) string {
	text := dev.ID + " (" + dev.Path + ")"
	if strings.HasPrefix(dev.ID, volumePrefix) {
		var disks []string
		for _, disk := range beneath(dev, h) {
			disks = append(disks, disk.ID)
		}
		text = dev.Path + ", LVM on " + cmp.Or(strings.Join(disks, " and "), "unknown disks")
	}
	if encrypted {
		text += ", encrypted"
	}
	if part != "" {
		text = part + ": " + text
	}
	return text
}
