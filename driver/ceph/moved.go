package ceph

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
)

// movedDisk is where the disk of an OSD is now, which is not on the host of its Daemon any more. The label on the disk tells: the cluster's fsid and the
// OSD's own uuid. The disk may have another identity there.
type movedDisk struct {
	host   string
	device string
	copies []string // the hosts of all disks with this label, if there are several
}

// findMoved looks for the disks of OSDs that are down and whose host is gone, or tells all its disks and does not have theirs. Of a host that is
// silent nothing is followed: a disk can be attached to two hosts, and the OSD may run on the other one.
func (p *planner) findMoved() {
	p.moved = map[string]*movedDisk{}
	if !p.reachable() {
		return
	}
	missed := map[string]*api.Daemon{}
	for _, d := range p.daemonsOf(TypeOSD) {
		at := placeOf(d)
		if at.device != "" && d.DeletionTimestamp == nil && p.inCeph(d) && !p.seenOSD(d).Up && (p.hosts[at.host] == nil || p.pulled(d)) {
			missed[strings.ToLower(d.Spec.Parameters[ParamOSDUUID])] = d
		}
	}
	if len(missed) == 0 {
		return
	}
	for i := range p.view.Hosts {
		h := &p.view.Hosts[i]
		for j := range h.Status.Devices {
			device := &h.Status.Devices[j]
			if d := missed[p.ownUUID(device)]; d != nil && d.Spec.Host != h.Name {
				p.noteMoved(d, h.Name, device.ID)
			}
		}
	}
}

func (p *planner) noteMoved(d *api.Daemon, host, device string) {
	m := p.moved[d.Name]
	if m == nil {
		p.moved[d.Name] = &movedDisk{host: host, device: device, copies: []string{host}}
		return
	}
	m.copies = append(m.copies, host)
}

// ownUUID is the OSD of this cluster that the label of a disk names, in lower case; empty where it names none, or the disk is in use.
func (p *planner) ownUUID(device *api.Device) string {
	if len(device.MountPoints)+len(device.Holders) > 0 {
		return ""
	}
	return p.labelled(device)
}

// labelled is the OSD of this cluster whose data is on a disk, in lower case. What holds no more than a database or a log has the same uuid, and is none.
func (p *planner) labelled(device *api.Device) string {
	if device.Ceph == nil || device.Ceph.Part != "" || !strings.EqualFold(device.Ceph.FSID, p.fsid) {
		return ""
	}
	return strings.ToLower(device.Ceph.OSDUUID)
}

// copiesOf are the hosts of the disks with this one's label, if there are several. Those that are in use, such as the paths to one disk, do not count.
func (p *planner) copiesOf(device *api.Device) (hosts []string) {
	uuid := p.ownUUID(device)
	for i := range p.view.Hosts {
		h := &p.view.Hosts[i]
		for j := range h.Status.Devices {
			if uuid != "" && p.ownUUID(&h.Status.Devices[j]) == uuid {
				hosts = append(hosts, h.Name)
			}
		}
	}
	if len(hosts) < 2 {
		return nil
	}
	return hosts
}

// whichOf says what to do about disks with one label.
const whichOf = "copies of one disk, or one disk attached to several hosts: leave one attached to one host"

// planMoves has OSDs follow their disks to hosts where these are named: the Daemon goes where it was, and another one is made where the disk is, with
// the same number and identity. Nothing is made, wiped or copied: Ceph finds the OSD in another place of its CRUSH map.
func (p *planner) planMoves() {
	for _, d := range p.daemonsOf(TypeOSD) {
		m := p.moved[d.Name]
		if m == nil {
			continue
		}
		u := &upkeep{host: d.Spec.Host, daemons: []*api.Daemon{d}, withdrawn: []string{label(d)}, reason: "its disk is on host " + m.host + " now"}
		if drains(d) {
			p.parting[d.Name] = true
		}
		for _, step := range []func(*upkeep) bool{p.mayFollow, p.serviced, p.weighAgain, p.keepDisk, p.leaveOld} {
			if !step(u) {
				break
			}
		}
	}
}

// mayFollow says what people have to do before an OSD follows its disk.
func (p *planner) mayFollow(u *upkeep) bool {
	d := u.daemons[0]
	m := p.moved[d.Name]
	switch h := p.hosts[m.host]; {
	case len(m.copies) > 1:
		p.say(u, api.VerdictRefuse, api.ReasonConflict,
			"the disk of %s is missing on host %s, and disks on %s have its label: %s",
			label(d), d.Spec.Host, strings.Join(m.copies, " and "), whichOf)
		return false
	case len(d.Spec.Devices) > 1:
		p.say(u, api.VerdictRefuse, api.ReasonDeviceUnavailable,
			"the OSD cannot follow its disk to host %s (%s), because its database or log is on another disk of host %s; put "+
				"the disk back. If its data is not needed, wipe the disk and remove it from the StorageNode of host %s",
			m.host, m.device, d.Spec.Host, d.Spec.Host)
		return false
	case p.going.Unnamed(devicePlace{m.host, m.device}.drive()):
		p.say(u, api.VerdictWait, api.ReasonDeviceUnavailable, "its disk is in host %s now, as %s: move it from the "+
			"StorageNode of host %[3]s to one of host %[1]s, and %[4]s follows with its data; or wipe it there",
			m.host, m.device, d.Spec.Host, label(d))
		return false
	case !h.AgentHeard() || p.closed(m.host):
		return p.await(u, notActive(h), "%s; the OSD follows when that host is active and connected", u.reason)
	}
	return true
}

// notActive is the reason why nothing begins on a host that is closed, or is not heard.
func notActive(h *api.Host) api.Reason {
	if h.ModeOf() != api.HostActive {
		return api.ReasonHostNotActive
	}
	return api.ReasonAgentDisconnected
}

// serviced leaves a host in maintenance as it is. One that is drained is left all the better.
func (p *planner) serviced(u *upkeep) bool {
	return p.hosts[u.host].ModeOf() != api.HostMaintenance || p.await(u, api.ReasonHostNotActive,
		"%s; waiting for host %s to leave mode %s", u.reason, u.host, api.HostMaintenance)
}

// weighAgain gives an OSD that was told to leave the weight that it had, and has it be in, as nobody will know of that when its Daemon is gone.
func (p *planner) weighAgain(u *upkeep) bool {
	d := u.daemons[0]
	if drains(d) && !p.seenOSD(d).In && memory.Of(d, memory.WasOut) == "" {
		p.command(api.ReasonBackInUse, verbOSDIn, label(d), nil, u.reason+"; the OSD stays")
		return p.await(u, api.ReasonConfiguring, "marking it in: %s", u.reason)
	}
	was := memory.Of(d, memory.CrushWeight)
	if at, placed := p.crushPlace(d); !placed || at.Weight > 0 || was == "" || was == weightText(0) {
		return true
	}
	p.command(api.ReasonBackInUse, verbReweight, label(d), map[string]string{label(d): was}, u.reason+"; the OSD stays")
	return p.await(u, api.ReasonConfiguring, "restoring its weight: %s", u.reason)
}

// keepDisk waits until the Daemon of an OSD that was told to leave does not have its disk wiped any more: that may come to be seen there once more,
// as one that is attached to two hosts does.
func (p *planner) keepDisk(u *upkeep) bool {
	return u.daemons[0].Spec.OnRemoval != api.DeletionWipe || p.await(u, api.ReasonRemoving,
		"recording that its disk is kept: %s", u.reason)
}

// leaveOld removes the Daemon from the host where the disk was, when it has stopped there. Of a host that is gone nobody tells that.
func (p *planner) leaveOld(u *upkeep) bool {
	d := u.daemons[0]
	p.stop[d.Name] = true
	if p.hosts[u.host] != nil && !ended(d) {
		return p.await(u, api.ReasonStopping, "waiting for it to stop on host %s: %s", u.host, u.reason)
	}
	p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: u.reason})
	p.decide(api.VerdictDo, api.ReasonRemoving, label(d), "removed from host %s: %s, where the OSD continues", u.host,
		u.reason)
	p.moving = true
	return true
}

// returns is the number of the OSD that a disk's label names, if Ceph has it, nothing runs it, and no Daemon is its own: it came from another host, or
// its Daemon was lost.
func (p *planner) returns(device *api.Device) (id int, is bool) {
	uuid := p.ownUUID(device)
	if uuid == "" || !p.reachable() || p.copiesOf(device) != nil {
		return 0, false
	}
	for _, o := range p.osds {
		if strings.EqualFold(o.uuid, uuid) {
			return 0, false
		}
	}
	for number, o := range p.seen.OSDs {
		if strings.EqualFold(o.UUID, uuid) {
			return number, !o.Up
		}
	}
	return 0, false
}

// onItsWay is the Daemon of the OSD that a disk's label names, as long as that is on the host where the disk was.
func (p *planner) onItsWay(host string, device *api.Device) *api.Daemon {
	uuid := p.ownUUID(device)
	for _, d := range p.daemonsOf(TypeOSD) {
		if uuid != "" && d.Spec.Host != host && strings.EqualFold(d.Spec.Parameters[ParamOSDUUID], uuid) && (p.moved[d.Name] != nil || d.DeletionTimestamp != nil) {
			return d
		}
	}
	return nil
}
