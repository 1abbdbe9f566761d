package ceph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/internal/foreign"
)

// place finds out where a daemon runs, and what becomes of it.
func (x *adopter) place(d *ClusterDaemon) {
	row := AdoptRow{Host: cmp.Or(d.Host, "?"), Daemon: d.Label(), Data: "?", Device: "-", RunBy: "?", PID: "?", Becomes: "refused, see below"}
	if have := x.own(d); have != nil {
		x.keep(d, have.Spec.Host, have.Spec.Parameters[ParamAddress], have.Spec.Devices)
		x.out.Rows = append(x.out.Rows, AdoptRow{have.Spec.Host, d.Label(), "-", "-", "Holdfast", strconv.Itoa(int(have.Status.PID)), "stays daemon/" + have.Name})
		return
	}
	before := len(x.out.Problems)
	h, p := x.hostOf(d)
	if p != nil {
		row.Host, row.Data, row.RunBy, row.PID = h.Name, cmp.Or(p.Data, "-"), foreign.RunBy(p), strconv.Itoa(int(p.PID))
		x.checkProcess(d, h, p)
	}
	var devices []api.DaemonDevice
	if d.Type == TypeOSD && p != nil {
		devices, row.Device = x.devicesOf(d, h)
	}
	if address := x.addressOf(d, h); len(x.out.Problems) == before && p != nil {
		x.keep(d, h.Name, address, devices)
		if d.Type == TypeMon {
			x.stores[d.ID] = p.Data
		}
		row.Becomes = "daemon/" + daemonName(x.Name, kindOf(d.Type), d.ID)
	}
	x.out.Rows = append(x.out.Rows, row)
}

// own is the Daemon of one that was adopted before and is handed over by now, or nil.
func (x *adopter) own(d *ClusterDaemon) *api.Daemon {
	name := daemonName(x.Name, kindOf(d.Type), d.ID)
	for i := range x.Daemons {
		if have := &x.Daemons[i]; have.Namespace == x.Namespace && have.Name == name && have.Spec.Cluster == x.Name && have.Spec.Parameters[ParamFSID] == x.Facts.FSID && !isWatched(*have) {
			return have
		}
	}
	return nil
}

// keep takes a daemon over.
func (x *adopter) keep(d *ClusterDaemon, host, address string, devices []api.DaemonDevice) {
	if x.addresses[host] == "" || d.Type == TypeMon {
		x.addresses[host] = address
	}
	switch d.Type {
	case TypeMon:
		x.members = append(x.members, member{ID: d.ID, Host: host, Address: address})
	case TypeMgr:
		x.mgrs = append(x.mgrs, seat{d.ID, host, address})
	case TypeOSD:
		id, _ := strconv.Atoi(d.ID) // a number, from Ceph's map
		is := &api.Daemon{Spec: api.DaemonSpec{Host: host, Devices: devices}}
		o := &osd{
			id: id, uuid: d.UUID, host: host, address: address, device: placeOf(is).device, parts: partsOf(is), encrypted: isEncrypted(is), started: true,
			adopted: true, bucket: x.Facts.Crush[d.Label()].In["host"],
		}
		x.osds = append(x.osds, o)
		x.devices[host] = append(x.devices[host], o.device)
	}
}

// hostOf is the host that a daemon runs on, and its process there.
func (x *adopter) hostOf(d *ClusterDaemon) (*api.Host, *api.ForeignDaemon) {
	var named *api.Host
	for i := range x.Hosts {
		h := &x.Hosts[i]
		if p := foreign.Pick(h.Status.Foreign, d.Type, d.ID, x.Facts.FSID); p != nil && (p.Cluster != "" || strings.EqualFold(shortName(h.Name), shortName(d.Host))) {
			return h, p
		}
		if d.Host != "" && strings.EqualFold(shortName(h.Name), shortName(d.Host)) {
			named = h
		}
	}
	switch {
	case d.Host == "" || !d.Up:
		x.problem("cannot adopt: %s does not run; start it, or remove it from the cluster", d.Label())
	case named == nil:
		x.problem("%s runs on %s, which is not a host: join it ('holdfast token create --role agent' here, 'holdfast "+
			"agent --join' there)", d.Label(), d.Host)
	case !named.AgentHeard():
		x.problem("%s runs on host %s, whose agent is disconnected: start the agent", d.Label(), named.Name)
	default:
		x.problem("Ceph reports %s on host %s, but the agent does not see its process: wait 30 s after a start",
			d.Label(), named.Name)
	}
	return named, nil
}

// checkProcess looks for what keeps the process from being handed over some day.
func (x *adopter) checkProcess(d *ClusterDaemon, h *api.Host, p *api.ForeignDaemon) {
	installed := h.Status.Release(d.Type)
	switch {
	case !h.AgentHeard():
		x.problem("%s runs on host %s, whose agent is disconnected: start the agent", d.Label(), h.Name)
	case p.Container || d.Contained:
		x.problem("cannot adopt %s on %s: it runs in a container (cephadm, Rook); first run it from the host's packages "+
			"on the same data (same release, 'ceph-volume activate')", d.Label(), h.Name)
	case p.Unit != "" && p.Unit != d.Type+"@"+d.ID+".service":
		x.problem("cannot adopt %s on %s: its unit %s does not belong to Ceph's packages (%s@%s.service) and may do more "+
			"than start it; start the daemon by Ceph's unit first", d.Label(), h.Name, p.Unit, d.Type, d.ID)
	case !named.MatchString(d.ID):
		x.problem("cannot adopt %s: %q is not a valid name of a Daemon (lower-case letters, digits, dots and dashes, at "+
			"most 40); replace it by a daemon with another name first", d.Label(), d.ID)
	case d.Type == TypeMon && p.Data == "":
		x.problem("the directory of the store of %s on %s is unknown", d.Label(), h.Name)
	case installed == "":
		x.problem("host %s has no executable %s: install the packages of release %s, which %s runs",
			h.Name, d.Type, d.Version, d.Label())
	case d.Version != "" && olderRelease(installed, d.Version):
		x.problem("cannot hand over %s on %s: it runs %s, but the host has the older %s, which cannot read the newer "+
			"data; install %s first", d.Label(), h.Name, d.Version, installed, d.Version)
	case d.Version != "" && installed != d.Version:
		x.note("%s on %s runs %s, but the host has %s: it runs that release from its hand-over",
			d.Label(), h.Name, d.Version, installed)
	}
}

// addressOf is the address that a daemon listens on, which has to be one of its host's.
func (x *adopter) addressOf(d *ClusterDaemon, h *api.Host) string {
	address := ipOf(d.Addrs)
	switch {
	case h == nil:
	case address == "" || !slices.Contains(h.Status.Addresses, address):
		x.problem("Ceph reports that %s listens on %s, which is not an address of host %s (%s)",
			d.Label(), cmp.Or(d.Addrs, "nothing"), h.Name, strings.Join(h.Status.Addresses, ", "))
	case d.Type == TypeMon && strings.ReplaceAll(d.Addrs, "/0", "") != (member{ID: d.ID, Host: h.Name, Address: address}).Addrs():
		x.problem("cannot adopt: %s listens on %s, but Holdfast supports only the ports %s (v2) and %s (v1); enable v2 "+
			"with 'holdfast ceph mon enable-msgr2', or replace a mon at other ports",
			d.Label(), d.Addrs, monset.PortV2, monset.PortV1)
	}
	return address
}
