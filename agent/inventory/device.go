package inventory

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// MinSize is the size in bytes of the smallest device that is ever available: the smallest on which an OSD was seen to
// become healthy and take writes, with RocksDB's buffers made small. With Ceph's defaults an OSD needs 400 MiB.
const MinSize = 64 << 20

// The bounds of the lists in Device.
const (
	maxLinks, maxMounts, maxHolders, maxReasons = 32, 32, 32, 16
)

// device is what the kernel and udev know of b.
func (b *block) device(id string) api.Device {
	d := api.Device{
		ID:      id,
		Path:    b.path(),
		Links:   list(b.udev.links, maxLinks),
		Kind:    b.kind(),
		Size:    *resource.NewQuantity(b.size, resource.BinarySI),
		Vendor:  b.vendor,
		Model:   b.model,
		Serial:  b.serial,
		WWN:     b.wwn,
		Holders: list(b.holders, maxHolders),
	}
	switch b.rotational {
	case "1":
		d.Media = api.MediaRotational
	case "0":
		d.Media = api.MediaSolidState
	}
	return d
}

func (b *block) kind() api.DeviceKind {
	if b.parent != nil {
		return api.DevicePartition
	}
	for prefix, kind := range map[string]api.DeviceKind{
		"loop": api.DeviceLoop, "dm-": api.DeviceMapped, "md": api.DeviceRaid, "sd": api.DeviceDisk, "hd": api.DeviceDisk,
		"vd": api.DeviceDisk, "xvd": api.DeviceDisk, "nvme": api.DeviceDisk, "mmcblk": api.DeviceDisk, "dasd": api.DeviceDisk,
		"cciss": api.DeviceDisk, "pmem": api.DeviceDisk,
	} {
		if strings.HasPrefix(b.name, prefix) {
			return kind
		}
	}
	return api.DeviceOther
}

// device puts everything that is known of a block together.
func (s *Scanner) device(b *block, ids identities, u use, found findings) api.Device {
	d := b.device(ids.ids[b.name])
	if b.parent != nil {
		d.Parent = ids.ids[b.parent.name]
	}
	if t := found.values["TYPE"]; t != "" {
		d.Filesystem = &api.DeviceFilesystem{Type: t, UUID: found.values["UUID"], Label: found.values["LABEL"]}
	}
	d.Ceph = found.ceph
	d.MountPoints = list(u.mounts[b.name], maxMounts)
	reasons := append(identityReasons(b, ids), hardwareReasons(b)...)
	reasons = append(reasons, useReasons(b, u)...)
	reasons = append(reasons, contentReasons(found)...)
	if s.Claimed != nil {
		if why := s.Claimed(d.ID); why != "" {
			reasons = append(reasons, why)
		}
	}
	// Late, and only if nothing else speaks against it: to open it exclusively is to use it for a
	// moment.
	if len(reasons) == 0 && s.look == nil {
		if why := openable(d.Path); why != "" {
			reasons = append(reasons, why)
		}
	}
	// Last: it tells how to free the device, which is no advice on one that is in use.
	if len(reasons) == 0 {
		reasons = unknownReasons(&d, found)
	}
	d.Availability, d.Reasons = api.DeviceAvailable, reasons[:min(len(reasons), maxReasons)]
	if len(reasons) > 0 {
		d.Availability = api.DeviceUnavailable
	}
	return d
}

func identityReasons(b *block, ids identities) []string {
	switch {
	case ids.shared[b.name] != "":
		return []string{ids.shared[b.name]}
	case b.backingDeleted():
		return []string{"its backing file has been deleted"}
	case strings.HasPrefix(b.backing, "/dev/"):
		return []string{"is a loop device on " + b.backing}
	case ids.ids[b.name] == unstable(b.name):
		return []string{"has no identity that stays the same: no world wide name, serial number or partition UUID"}
	}
	return nil
}

func hardwareReasons(b *block) []string {
	var out []string
	if b.readOnly {
		out = append(out, "is read-only")
	}
	if b.size < MinSize {
		out = append(out, fmt.Sprintf("is smaller than %d MiB, the minimum for an OSD", MinSize>>20))
	}
	return out
}

func useReasons(b *block, u use) []string {
	out := mountReasons(list(u.mounts[b.name], math.MaxInt))
	if u.swap[b.name] {
		out = append(out, "in use as swap space")
	}
	if u.root[b.disk().name] {
		out = append(out, "is on the disk of the root file system")
	}
	if len(b.partitions) > 0 {
		out = append(out, "has partitions: "+strings.Join(b.partitions, ", "))
	}
	for _, h := range b.holders {
		out = append(out, "is part of "+u.title(h))
	}
	if loop := u.backing[b.name]; loop != "" {
		out = append(out, "is the backing store of /dev/"+loop)
	}
	return out
}

// mountReasons tells some of the mount points: with containers there may be hundreds, and other reasons matter as well.
func mountReasons(points []string) []string {
	const enough = 4
	var out []string
	for i, m := range points {
		if i == enough && len(points) > enough+1 {
			return append(out, fmt.Sprintf("mounted at %d more places", len(points)-enough))
		}
		out = append(out, "mounted at "+m)
	}
	return out
}

// title names a holder as people know it.
func (u use) title(holder string) string {
	b := u.byName[holder]
	switch {
	case b == nil || b.dmName == "":
		return holder
	case strings.HasPrefix(b.dmUUID, "mpath-"):
		return fmt.Sprintf("multipath device %s (%s)", b.dmName, holder)
	case strings.HasPrefix(b.dmUUID, "LVM-"):
		return fmt.Sprintf("logical volume %s (%s)", b.dmName, holder)
	}
	return fmt.Sprintf("%s (%s)", b.dmName, holder)
}

// list copies a list in order, without repetitions, up to its bound.
func list(in []string, bound int) []string {
	if len(in) == 0 {
		return nil
	}
	seen := map[string]bool{}
	var out []string
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out[:min(len(out), bound)]
}
