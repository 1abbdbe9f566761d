package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// devicePart is what the OSD calls the device for a part of it.
var devicePart = map[drives.Part]string{drives.Data: DeviceBlock, drives.DB: DeviceDB, drives.WAL: DeviceWAL}

// partitionOf is the identity of the partition for a part of the OSD on a device. It is made of the OSD's own, so that no other is ever taken for it;
// that of its data is the device, of which the OSD's own is made.
func (p *planner) partitionOf(at drives.Place, part drives.Part) string {
	if part == drives.Data {
		return at.ID
	}
	return partitionID(ids.OSD(p.fsid, at.Host, at.ID), string(part))
}

// shareOf is the identity of one of the partitions that a disk is divided into for several OSDs.
func (p *planner) shareOf(disk drives.Place, number int) string {
	return partitionID(ids.OSD(p.fsid, disk.Host, disk.ID), fmt.Sprintf("%s %d", drives.Data, number))
}

func partitionID(of, name string) string {
	space, err := uuid.Parse(of)
	if err != nil {
		space = uuid.NewSHA1(uuid.NameSpaceOID, []byte(of))
	}
	return "partuuid-" + uuid.NewSHA1(space, []byte(name)).String()
}

// foreseeShares has those partitions of a group that its disks are yet to be divided into count as there, and empty. Where the disk is gone it says that.
func (p *planner) foreseeShares(n *node) {
	for i := range n.Devices {
		r := &n.Devices[i]
		x := groupDevice(n.group, devicePlace{n.hostName(), r.ID})
		if r.Device != nil || r.Problem == "" || x == nil || x.Data == nil {
			continue
		}
		if !slices.ContainsFunc(n.Host.Status.Devices, func(d api.Device) bool { return d.ID == x.Data.ID }) {
			r.Problem = fmt.Sprintf("disk %s with %s is missing on host %s: was it removed, or did it fail?",
				strings.TrimSpace(x.Data.ID+" "+x.Data.Serial), r.ID, n.Host.Name)
			continue
		}
		r.Problem, r.Device = "", &api.Device{ID: r.ID, Kind: api.DevicePartition, Parent: x.Data.ID, Serial: x.Data.Serial, Size: x.Data.Size, Availability: api.DeviceAvailable}
	}
}

// groupDevice is what a group has recorded of the device of an OSD, or nil.
func groupDevice(o *drives.Outcome, at devicePlace) *api.GroupDevice {
	i := slices.IndexFunc(o.Devices, func(d api.GroupDevice) bool { return d.Host == at.host && d.ID == at.device })
	if i < 0 {
		return nil
	}
	return &o.Devices[i]
}

// dividedBy is the group that divides a disk, or is to.
func (p *planner) dividedBy(at drives.Place) string {
	for _, o := range p.groups {
		if drives.Divides(o.Devices, at) {
			return o.Group.Name
		}
	}
	return ""
}

// partsFor are the devices of a new OSD of a group that are parts of disks.
func (p *planner) partsFor(o *drives.Outcome, at devicePlace) (parts []api.DaemonDevice) {
	x := groupDevice(o, at)
	if x == nil {
		return nil
	}
	for _, part := range drives.Parts {
		if s := drives.Slot(x, part); s != nil {
			parts = append(parts, api.DaemonDevice{
				Name: devicePart[part], ID: p.partitionOf(drives.Place{Host: at.host, ID: at.device}, part), Of: s.ID, Bytes: s.Size.Value(),
			})
		}
	}
	return parts
}

// partsOf are those that an OSD was made with, and its database and log on devices that were found.
func partsOf(d *api.Daemon) (parts []api.DaemonDevice) {
	for _, x := range d.Spec.Devices {
		if x.Of != "" || x.Name != DeviceBlock {
			parts = append(parts, x)
		}
	}
	return parts
}

// partsFound are what an OSD that comes back has beside its main device, by the labels there: its Daemon, which told, was lost. Where several devices
// have the same label, why says so.
func (p *planner) partsFound(h *api.Host, o *osd) (parts []api.DaemonDevice, why string) {
	for _, want := range labelParts[1:] {
		for i := range h.Status.Devices {
			dev := &h.Status.Devices[i]
			if dev.Ceph == nil || dev.Ceph.Part != want.part || !strings.EqualFold(dev.Ceph.OSDUUID, o.uuid) || dev.Ceph.FSID != "" && !strings.EqualFold(dev.Ceph.FSID, p.fsid) ||
				sealed(dev) != o.encrypted || !o.encrypted && len(dev.Holders)+len(dev.MountPoints) > 0 {
				continue
			}
			if n := len(parts); n > 0 && parts[n-1].Name == want.device {
				return nil, fmt.Sprintf("%s and %s both have the label of its %s", parts[n-1].ID, dev.ID, want.device)
			}
			parts = append(parts, api.DaemonDevice{Name: want.device, ID: dev.ID})
		}
	}
	return parts, ""
}

// leavingPartitions tells the partitions of OSDs that leave, or have failed and are replaced, and that go with them.
func (p *planner) leavingPartitions() func(drives.Place) bool {
	goes := map[drives.Place]bool{}
	for _, d := range p.daemonsOf(TypeOSD) {
		for _, x := range partsOf(d) {
			if x.Of == "" {
				continue // it may be wiped, and stays
			}
			goes[drives.Place{Host: d.Spec.Host, ID: x.ID}] = p.policyOn(d.Spec.Host) == api.DeletionWipe || p.failed(d)
		}
	}
	return func(at drives.Place) bool { return goes[at] }
}

// failed says whether an OSD is one that another disk replaces when its own is taken from the cluster.
func (p *planner) failed(d *api.Daemon) bool {
	if d.Spec.Parameters[ParamDrain] == memory.Replace || keepsNumber(p, d) {
		return true
	}
	return p.reachable() && (p.destroyed(d) || p.broken(d))
}

// partsWait says why the partitions of a new OSD cannot be made yet: there is no room before another OSD has left.
func (p *planner) partsWait(o *osd) (none engine.Objection) {
	h := p.hosts[o.host]
	for _, x := range o.parts {
		if x.Of == "" {
			continue // it was found
		}
		size, used := int64(0), int64(0)
		for i := range h.Status.Devices {
			d := &h.Status.Devices[i]
			switch d.ID {
			case x.Of:
				size = d.Size.Value()
			case x.ID:
				used -= x.Bytes // it is there
			}
			if d.Parent == x.Of {
				used += d.Size.Value()
			}
		}
		switch {
		case size == 0:
			return engine.Wait(api.ReasonDeviceUnavailable, "disk %s for its %s is missing on host %s", x.Of, x.Name, o.host)
		case used+x.Bytes > drives.Usable(size):
			return engine.Wait(api.ReasonInsufficientSpace,
				"waiting for space on disk %s for its %s: a leaving OSD still uses it", x.Of, x.Name)
		}
	}
	return none
}

// checkParts tells of an OSD whose database or log is on a disk that is gone: its data is lost with that.
func (p *planner) checkParts(o *osd) {
	h := p.hosts[o.host]
	if h == nil || !h.AgentHeard() || h.Status.BootID == "" || !p.inMap(o) || p.seen.OSDs[o.id].Up {
		return
	}
	for _, x := range o.parts {
		lies := cmp.Or(x.Of, x.ID)
		if slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == lies }) {
			continue
		}
		what, way := "device", "Then remove or replace the OSD"
		if x.Of != "" {
			what, way = "disk", "To remove all OSDs that it serves, name it in spec.exclude of the DriveGroup"
		}
		p.decide(api.VerdictWait, api.ReasonDeviceUnavailable, o.label(), "its %s is on %s %s, which is missing on host "+
			"%s: put the disk back; if the disk is broken, the data of %s is lost. %s",
			x.Name, what, lies, o.host, o.label(), way)
	}
}
