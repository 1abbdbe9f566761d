package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// osd is a wanted OSD.
type osd struct {
	id                    int
	uuid                  string
	host, device, address string
	started               bool   // its Daemon was wanted Running before
	leaving               bool   // its Daemon is being removed
	adopted               bool   // it is being adopted, and stays where CRUSH has it:
	bucket                string // in this bucket of a host
	class                 string
	encrypted             bool
	parts                 []api.DaemonDevice // those of its devices that are parts of disks, and what it has beside its main one
}

func (o *osd) label() string { return osdName(o.id) }

// devices are all that it has, its main device first.
func (o *osd) devices() []api.DaemonDevice {
	if len(o.parts) > 0 && o.parts[0].Name == DeviceBlock {
		return slices.Clone(o.parts)
	}
	return append([]api.DaemonDevice{{Name: DeviceBlock, ID: o.device}}, o.parts...)
}

// osdHave is the Daemon that an OSD has, or nil.
func (p *planner) osdHave(o *osd) *api.Daemon {
	return p.have[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]
}

func (o *osd) place() devicePlace { return devicePlace{o.host, o.device} }

// devicePlace is the device of a host, the only thing that an OSD is tied to.
type devicePlace struct{ host, device string }

func (at devicePlace) drive() drives.Place { return drives.Place{Host: at.host, ID: at.device} }

// planOSDs keeps the OSDs that there are and adds one for each device that a StorageNode names and that can be used.
func (p *planner) planOSDs() {
	p.keepOSDs()
	p.findMoved()
	var fresh []*osd
	for _, n := range p.nodes {
		fresh = append(fresh, p.nodeOSDs(n)...)
	}
	p.number(fresh)
	for _, o := range p.osds {
		p.checkOSD(o)
		p.checkParts(o)
		if p.keyless(o) {
			p.decide(api.VerdictWait, api.ReasonDependencyNotReady, o.label(),
				"cannot encrypt its devices: Secret %s has no key; add an entry %q of at least 32 random characters",
				secretName(p.cluster.Name, o.label()), api.KeyLUKS)
		}
	}
	slices.SortFunc(p.osds, func(a, b *osd) int { return a.id - b.id })
}

// keepOSDs takes over the OSDs that have a Daemon.
func (p *planner) keepOSDs() {
	for _, d := range p.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if err != nil {
			p.decide(api.VerdictSkip, api.ReasonNotManaged, label(d),
				"daemon %s is left unchanged: %q is not the number of an OSD", d.Name, d.Spec.ID)
			continue
		}
		o := &osd{
			id: id, uuid: d.Spec.Parameters[ParamOSDUUID], host: d.Spec.Host, address: d.Spec.Parameters[ParamAddress],
			started: d.Spec.State != api.WantPrepared, leaving: d.DeletionTimestamp != nil,
			device: placeOf(d).device, class: d.Spec.Parameters[ParamDeviceClass], parts: partsOf(d), encrypted: isEncrypted(d),
		}
		p.osds = append(p.osds, o)
		p.taken[o.place()] = o
	}
}

// nodeOSDs looks at the devices that a node names and returns the OSDs to add, not numbered yet.
func (p *planner) nodeOSDs(n *node) []*osd {
	var fresh []*osd
	for i := range n.Devices {
		r := &n.Devices[i]
		at := devicePlace{n.hostName(), r.ID}
		if o := p.taken[at]; o != nil && r.ID != "" {
			p.keepDeclared(n, r, o)
			continue
		}
		if r.Problem == "" && r.Device != nil && n.Host != nil {
			if d := p.onItsWay(n.Host.Name, r.Device); d != nil {
				n.toCome++
				p.decide(api.VerdictWait, api.ReasonRemoving, n.object(),
					"%s follows its disk %s to this host when it has left host %s", label(d), r.ID, d.Spec.Host)
				continue
			}
		}
		reason := api.ReasonDeviceUnavailable
		switch {
		case r.Problem == "" && r.Device != nil:
			o := p.unusable(n, r.Device)
			r.Problem, reason = o.Message, o.Reason
		case r.Problem == "":
			n.toCome++ // the host or its inventory is not there yet, as the node's own waits tell
			continue
		}
		if r.Problem != "" {
			p.decide(api.VerdictRefuse, reason, n.object(), "%s", r.Problem)
			continue
		}
		if !n.usable() || !p.mayNumber() || p.closed(n.hostName()) {
			if n.usable() && p.closed(n.hostName()) {
				why := p.whyNotYet(n)
				p.decide(api.VerdictSkip, why.Reason, n.object(), "cannot create an OSD on device %s: %s", r.ID, why.Message)
				continue
			}
			if n.usable() || n.waiting() {
				n.toCome++
				why := p.whyNotYet(n)
				p.decide(api.VerdictWait, why.Reason, n.object(), "waiting to create an OSD on device %s: %s", r.ID, why.Message)
			}
			continue
		}
		number, returns := p.returns(r.Device)
		if old := p.replacedBy(at, returns); old != nil {
			n.toCome++
			p.decide(api.VerdictWait, api.ReasonOneAtATime, n.object(),
				"waiting to create an OSD on device %s: it replaces %s, which is removed first", r.ID, label(old))
			continue
		}
		o := &osd{
			uuid: ids.OSD(p.fsid, n.Host.Name, r.ID), host: n.Host.Name, device: r.ID, address: n.Address,
			id: labelNumber(r.Device),
		}
		if returns {
			o.uuid, o.id = strings.ToLower(r.Device.Ceph.OSDUUID), number
		}
		if n.group != nil {
			o.class, o.parts, o.encrypted = n.group.Group.Spec.DeviceClass, p.partsFor(n.group, at), encrypts(n.group, at)
		}
		o.encrypted = o.encrypted || sealed(r.Device)
		if returns && len(o.parts) == 0 {
			if o.parts, r.Problem = p.partsFound(n.Host, o); r.Problem != "" {
				p.decide(api.VerdictRefuse, api.ReasonConflict, n.object(),
					"OSD %d of device %s cannot return: %s: %s", o.id, r.ID, r.Problem, whichOf)
				continue
			}
		}
		if why := p.partsWait(o); !why.None() {
			n.toCome++
			p.decide(api.VerdictWait, why.Reason, n.object(), "waiting to create an OSD on device %s: %s", r.ID, why.Message)
			continue
		}
		p.taken[at] = o
		fresh = append(fresh, o)
	}
	return fresh
}

// keepDeclared notes that a node names the device of an OSD that exists. A second node that names it has its problem told by
// ResolveNodes.
func (p *planner) keepDeclared(n *node, r *engine.ResolvedDevice, o *osd) {
	if r.Problem != "" {
		p.decide(api.VerdictRefuse, api.ReasonDeviceUnavailable, n.object(), "%s", r.Problem)
		if r.Device != nil {
			return
		}
	}
	if n.Address != "" && n.usable() {
		o.address = n.Address
	}
}

// unusable says why a device cannot become an OSD; none when it can. A device with this very OSD on it
// can: its Daemon was lost, or is about to be written by a run that was cut off.
func (p *planner) unusable(n *node, d *api.Device) (none engine.Objection) {
	if by := p.dividedBy(drives.Place{Host: n.Host.Name, ID: d.ID}); by != "" {
		return engine.Refusal(api.ReasonConflict,
			"device %s on host %s is divided by DriveGroup %s: name its partitions instead, or remove it from %s",
			d.ID, n.Host.Name, by, n.what())
	}
	why := d.Taken()
	if why == "" {
		return none
	}
	if copies := p.copiesOf(d); copies != nil {
		return engine.Refusal(api.ReasonConflict,
			"device %s on host %s cannot be used: disks on %s have its label, of OSD %s: %s",
			d.ID, n.Host.Name, strings.Join(copies, " and "), d.Ceph.OSDUUID, whichOf)
	}
	if p.ours(n.Host.Name, d) {
		return none
	}
	if _, is := p.returns(d); is {
		return none
	}
	if uuid := p.labelled(d); uuid != "" && !p.reachable() && len(p.have) > 0 {
		return engine.Refusal(api.ReasonNotAnswering,
			"device %s on host %s holds OSD %s of this cluster: waiting for Ceph to say whether it is needed",
			d.ID, n.Host.Name, uuid)
	}
	return engine.Refusal(api.ReasonDeviceUnavailable,
		"device %s on host %s cannot be used: %s. If its data is not needed, free the device (docs/how-to/devices.md), "+
			"otherwise remove it from %s",
		d.ID, n.Host.Name, why, n.what())
}

// ours says whether a device carries the label of the very OSD that it would become. The label of one that was cut off while it
// was made may lack the fsid; the uuid alone tells, because it is made from the fsid.
func (p *planner) ours(host string, d *api.Device) bool {
	return d.Ceph != nil && strings.EqualFold(d.Ceph.OSDUUID, ids.OSD(p.fsid, host, d.ID)) &&
		(d.Ceph.FSID == "" || strings.EqualFold(d.Ceph.FSID, p.fsid)) && len(d.MountPoints)+len(d.Holders) == 0
}

// labelNumber is the number that a device's own label says, or -1.
func labelNumber(d *api.Device) int {
	if d.Ceph == nil || d.Ceph.OSDID == nil || d.Taken() == "" {
		return -1
	}
	return int(*d.Ceph.OSDID)
}

// mayNumber says whether new OSDs can be given numbers. Once Ceph has OSDs, its own map has to be seen: a number that is free
// among the Daemons may be taken there.
func (p *planner) mayNumber() bool {
	return p.reachable() || !slices.ContainsFunc(p.osds, func(o *osd) bool { return o.started })
}

func (p *planner) whyNotYet(n *node) engine.Objection {
	switch {
	case !n.usable():
		return engine.Wait(api.ReasonNotReady, "its StorageNode is not accepted yet")
	case p.closed(n.hostName()):
		return engine.Wait(api.ReasonHostNotActive, "host %s is in mode %s", n.hostName(), p.hosts[n.hostName()].ModeOf())
	}
	return engine.Wait(api.ReasonNotAnswering, "the mons do not answer, and they assign the number of a new OSD")
}

// number gives each new OSD its number: the one that Ceph knows it by, else the one in its device's label, else that of an OSD
// that it replaces, else the lowest free one, in the order of nodes and devices.
func (p *planner) number(fresh []*osd) {
	used := map[int]bool{}
	for _, o := range p.osds {
		used[o.id] = true
	}
	known := map[string]int{}
	if p.reachable() {
		for id, o := range p.seen.OSDs {
			known[o.UUID] = id
		}
	}
	free := func(id int, o *osd) bool {
		if used[id] || !p.reachable() {
			return !used[id]
		}
		host, destroyed := p.seen.Destroyed[id]
		return (!destroyed || p.crushOwns(o.host, host)) && (p.seen.OSDs[id].UUID == "" || p.seen.OSDs[id].UUID == o.uuid)
	}
	var rest []*osd
	for _, o := range fresh {
		if id, ok := known[o.uuid]; ok {
			o.id = id
		}
		if o.id < 0 {
			o.id = p.destroyedOn(o.host, used)
		}
		if o.id < 0 || !free(o.id, o) {
			rest = append(rest, o)
			continue
		}
		used[o.id] = true
	}
	next := 0
	for _, o := range rest {
		for ; !free(next, o); next++ {
		}
		o.id = next
		used[next] = true
	}
	p.osds = append(p.osds, fresh...)
}

// destroyedOn is the lowest number that Ceph keeps for another OSD on a host, or -1.
func (p *planner) destroyedOn(host string, used map[int]bool) int {
	if p.reachable() {
		for _, id := range slices.Sorted(maps.Keys(p.seen.Destroyed)) {
			if p.crushOwns(host, p.seen.Destroyed[id]) && !used[id] {
				return id
			}
		}
	}
	return -1
}

// checkOSD tells what is not as one might expect with an OSD that exists.
func (p *planner) checkOSD(o *osd) {
	if !p.reachable() {
		return
	}
	if in, ok := p.seen.OSDs[o.id]; ok && in.UUID != o.uuid {
		p.decide(api.VerdictRefuse, api.ReasonConflict, o.label(),
			"Ceph has another OSD with this number (uuid %s; the one on device %s of host %s has %s): remove that OSD from "+
				"Ceph. Or, to give this one a new number, set spec.mode to Observed, delete the Daemon %s, and set spec.mode to "+
				"Active", in.UUID, o.device, o.host, o.uuid, daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id)))
	}
}

// inMap says whether Ceph knows the OSD, by its number and its own identity.
func (p *planner) inMap(o *osd) bool {
	return p.reachable() && o.uuid != "" && p.seen.OSDs[o.id].UUID == o.uuid
}

// osdDaemon is only Prepared until Ceph knows the OSD, as one that starts before is refused by the mons and ends; in a new cluster until its
// defaults are stored; and until its host is where CRUSH is to have it,
// unless the OSD has its place already. So is one that Ceph was asked to forget, on a host that is not drained any more.
func (p *planner) osdDaemon(o *osd, facts *confFacts) api.Daemon {
	bucket, placed := p.crushPlacement(o)
	d := p.daemon(TypeOSD, strconv.Itoa(o.id), o.host, o.address, facts.at(p.crushOptions(o, bucket, placed)))
	have := p.have[d.Name]
	forgotten := p.reachable() && have != nil && told(have)
	if (!o.started || forgotten) && (!p.inMap(o) || p.unplaced[o.host] && !placed || !p.defaultsStored()) {
		d.Spec.State = api.WantPrepared
	}
	d.Spec.Command = append(d.Spec.Command, "--osd-data", "${DATA}/store")
	d.Spec.Files = append(d.Spec.Files, p.keyringFile(o.label()))
	d.Spec.Devices = o.devices()
	if o.encrypted {
		for i := range d.Spec.Devices {
			d.Spec.Devices[i].KeySecret = secretName(p.cluster.Name, o.label())
		}
	}
	d.Spec.Parameters[ParamOSDUUID] = o.uuid
	if bucket != "" {
		d.Spec.Parameters[ParamCrushHost] = bucket
	}
	if placed {
		d.Spec.Parameters[ParamCrushPlaced] = "true"
	}
	if o.class != "" {
		d.Spec.Parameters[ParamDeviceClass] = o.class
	}
	if p.parting[d.Name] {
		d.Spec.OnRemoval = p.policyOn(o.host)
		p.noteWeight(&d, have)
	}
	if p.moved[d.Name] != nil {
		d.Spec.OnRemoval = api.DeletionRetain
	}
	if have != nil && keepsNumber(p, have) {
		memory.Set(&d, memory.Replaced, "true")
	}
	_, replaced := p.replaced[d.Name]
	memory.SetDrain(&d, p.parting[d.Name], p.empty[d.Name], replaced)
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderOSD, metav1.Duration{Duration: stopTimeoutOSD}
	return d
}
