package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/foreign"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// AnnotationAdopted is on a StorageCluster that was adopted: the fsid of the Ceph cluster that was there. Such a cluster is never founded.
const AnnotationAdopted = "holdfast.io/adopted"

// AdoptRequest is what a running cluster is to be adopted from.
type AdoptRequest struct {
	Namespace, Name string
	// Conf is the ceph.conf that the cluster's daemons have, by section and name (cephconf.Parse).
	Conf  map[string]map[string]string
	Facts *AdoptFacts
	// Hosts, Clusters and Daemons are all that there are: daemons that were handed over before stay. Secrets are those of the namespace with the
	// cluster's label.
	Hosts    []api.Host
	Clusters []api.StorageCluster
	Daemons  []api.Daemon
	Secrets  []engine.SecretInfo
}

// Adoption is what becomes of a running cluster. It is a value: making it changes nothing.
type Adoption struct {
	Cluster api.StorageCluster
	Nodes   []api.StorageNode
	// Daemons are only watched (api.WantWatched).
	Daemons []api.Daemon
	Secrets []AdoptedSecret
	Rows    []AdoptRow
	// Problems stand in the way, each with the way out; Notes do not.
	Problems, Notes []string
}

// AdoptedSecret is a key of the cluster, as a Secret of Holdfast's holds it.
type AdoptedSecret struct {
	Name        string
	Annotations map[string]string
	Data        map[string][]byte
}

// AdoptRow tells of one daemon.
type AdoptRow struct{ Host, Daemon, Data, Device, RunBy, PID, Becomes string }

// Adopt says what adopting a running cluster would come to. It is pure.
func Adopt(r AdoptRequest) *Adoption {
	x := &adopter{AdoptRequest: r, out: &Adoption{}, addresses: map[string]string{}, devices: map[string][]string{}, stores: map[string]string{}}
	x.checkNames()
	x.checkReleases()
	x.out.Cluster = x.cluster()
	for i := range r.Facts.Daemons {
		x.place(&r.Facts.Daemons[i])
	}
	x.checkCounts()
	x.leaveAlone()
	x.out.Nodes = x.nodes()
	x.out.Secrets = x.secrets()
	x.out.Daemons = x.daemons()
	return x.out
}

// adopter makes one Adoption.
type adopter struct {
	AdoptRequest
	out     *Adoption
	members []member
	mgrs    []seat
	osds    []*osd
	// addresses are those that daemons listen on, and devices those of OSDs, by host.
	addresses map[string]string
	devices   map[string][]string
	// stores are the directories of the mons' stores, by their ids.
	stores map[string]string
}

func (x *adopter) problem(format string, args ...any) {
	x.out.Problems = append(x.out.Problems, fmt.Sprintf(format, args...))
}

func (x *adopter) note(format string, args ...any) {
	x.out.Notes = append(x.out.Notes, fmt.Sprintf(format, args...))
}

// checkNames refuses a name that means something else already.
func (x *adopter) checkNames() {
	fsid := x.Facts.FSID
	for i := range x.Clusters {
		c := &x.Clusters[i]
		same := c.Namespace == x.Namespace && c.Name == x.Name
		switch {
		case same && c.Annotations[AnnotationAdopted] == fsid:
			x.note("storagecluster/%s is this cluster already: what is missing is added, and nothing else changes", c.Name)
		case same:
			x.problem("storagecluster/%s is another cluster (fsid %s; the one to adopt is %s): choose another name",
				c.Name, cmp.Or(c.Annotations[AnnotationAdopted], x.knownFSID(), "not known"), fsid)
		case c.Annotations[AnnotationAdopted] == fsid || fsidOf(c) == fsid:
			x.problem("the Ceph cluster %s is storagecluster/%s in namespace %s already", fsid, c.Name, c.Namespace)
		}
	}
	if known := x.knownFSID(); known != "" && known != fsid {
		x.problem("Secrets %s-key-* belong to another Ceph cluster (fsid %s): delete them if its data is not needed any more, or choose another name", x.Name, known)
	}
	if own := strings.ToLower(x.Conf["global"]["fsid"]); own != "" && own != fsid {
		x.problem("ceph.conf is of the cluster %s, and the mons that it names are of %s: give the right file with --conf", own, fsid)
	}
}

// knownFSID is what Secrets of the name were made for.
func (x *adopter) knownFSID() string {
	for _, s := range x.Secrets {
		if s.Name == secretName(x.Name, entityMon) {
			return s.Annotations[AnnotationFSID]
		}
	}
	return ""
}

// oldest and newest are the major releases of Ceph that Holdfast runs.
const oldestRelease, newestRelease = 16, 20

func (x *adopter) checkReleases() {
	var versions []string
	for i := range x.Facts.Daemons {
		if v := x.Facts.Daemons[i].Version; v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return slices.Compare(releaseNumbers(a), releaseNumbers(b)) })
	for _, v := range versions {
		if major := releaseNumbers(v)[0]; major < oldestRelease || major > newestRelease {
			x.problem("Ceph %s runs: Holdfast runs releases from %d to %d. Bring the cluster to one of them first", v, oldestRelease, newestRelease)
		}
	}
	if len(versions) > 1 {
		x.problem("several releases run side by side (%s): finish the upgrade first, so that there is one thing at a time to go wrong", strings.Join(versions, ", "))
	}
	if auth := x.Conf["global"]["auth_cluster_required"]; auth != "" && auth != "cephx" {
		x.problem("auth_cluster_required is %q: Holdfast's daemons prove who they are by cephx alone. Switch cephx on first", auth)
	}
}

// named is what Daemons and cephx can both have as an id.
var named = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$`)

// place finds out where a daemon runs, and what becomes of it.
func (x *adopter) place(d *ClusterDaemon) {
	row := AdoptRow{Host: cmp.Or(d.Host, "?"), Daemon: d.Label(), Data: "?", Device: "-", RunBy: "?", PID: "?", Becomes: "refused, see below"}
	if have := x.own(d); have != nil {
		x.keep(d, have.Spec.Host, have.Spec.Parameters[ParamAddress], placeOf(have).device)
		x.out.Rows = append(x.out.Rows, AdoptRow{have.Spec.Host, d.Label(), "-", "-", "Holdfast", strconv.Itoa(int(have.Status.PID)), "stays daemon/" + have.Name})
		return
	}
	before := len(x.out.Problems)
	h, p := x.hostOf(d)
	if p != nil {
		row.Host, row.Data, row.RunBy, row.PID = h.Name, cmp.Or(p.Data, "-"), foreign.RunBy(p), strconv.Itoa(int(p.PID))
		x.checkProcess(d, h, p)
	}
	var device string
	if d.Type == TypeOSD && p != nil {
		device, row.Device = x.deviceOf(d, h)
	}
	if address := x.addressOf(d, h); len(x.out.Problems) == before && p != nil {
		x.keep(d, h.Name, address, device)
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
func (x *adopter) keep(d *ClusterDaemon, host, address, device string) {
	if x.addresses[host] == "" || d.Type == TypeMon {
		x.addresses[host] = address
	}
	switch d.Type {
	case TypeMon:
		x.members = append(x.members, member{d.ID, host, address})
	case TypeMgr:
		x.mgrs = append(x.mgrs, seat{d.ID, host, address})
	case TypeOSD:
		id, _ := strconv.Atoi(d.ID) // a number, from Ceph's map
		x.osds = append(x.osds, &osd{id: id, uuid: d.UUID, host: host, address: address, device: device, started: true})
		x.devices[host] = append(x.devices[host], device)
	}
}

// hostOf is the host that a daemon runs on, and its process there.
func (x *adopter) hostOf(d *ClusterDaemon) (*api.Host, *api.ForeignDaemon) {
	var named *api.Host
	for i := range x.Hosts {
		h := &x.Hosts[i]
		if p := foreign.Pick(h.Status.Foreign, d.Type, d.ID, x.Facts.FSID); p != nil && (p.Cluster != "" || shortName(h.Name) == shortName(d.Host)) {
			return h, p
		}
		if d.Host != "" && shortName(h.Name) == shortName(d.Host) {
			named = h
		}
	}
	switch {
	case d.Host == "" || !d.Up:
		x.problem("%s does not run: start it, or remove it from the cluster, first", d.Label())
	case named == nil:
		x.problem("%s runs on %s, which is no host of Holdfast: join it ('holdfast token create --role agent' here, 'holdfast agent --join' there)", d.Label(), d.Host)
	case !named.AgentHeard():
		x.problem("%s runs on host %s, whose agent is silent: start it", d.Label(), named.Name)
	default:
		x.problem("%s runs on host %s by Ceph's word, and the agent there does not see its process: one that has just been started is seen within 30 s", d.Label(), named.Name)
	}
	return named, nil
}

// checkProcess looks for what keeps the process from being handed over some day.
func (x *adopter) checkProcess(d *ClusterDaemon, h *api.Host, p *api.ForeignDaemon) {
	installed := h.Status.Packages[d.Type]
	switch {
	case !h.AgentHeard():
		x.problem("%s runs on host %s, whose agent is silent: start it", d.Label(), h.Name)
	case p.Container || d.Contained:
		x.problem("%s on %s runs in a container (cephadm, Rook): Holdfast takes over daemons of the host's own packages alone. Its data is Ceph's own, "+
			"so running it from packages first (same release, 'ceph-volume activate') is the way", d.Label(), h.Name)
	case p.Unit != "" && p.Unit != d.Type+"@"+d.ID+".service":
		x.problem("%s on %s is run by the unit %s, which is none of Ceph's packages (%s@%s.service): Holdfast does not know what else that unit does. "+
			"Start the daemon by Ceph's own unit first", d.Label(), h.Name, p.Unit, d.Type, d.ID)
	case !named.MatchString(d.ID):
		x.problem("%s: %q cannot be the name of a Daemon (small letters, digits, dots and dashes, at most 40): replace it by one with another name first", d.Label(), d.ID)
	case d.Type == TypeMon && p.Data == "":
		x.problem("the directory of the store of %s on %s is not known", d.Label(), h.Name)
	case installed == "":
		x.problem("host %s has no %s of its own that would run: install the packages of release %s, which %s runs", h.Name, d.Type, d.Version, d.Label())
	case d.Version != "" && olderRelease(installed, d.Version):
		x.problem("%s on %s runs %s, and the older %s is installed there: it could not read what the newer one has written. Install %s first", d.Label(), h.Name, d.Version, installed, d.Version)
	case d.Version != "" && installed != d.Version:
		x.note("%s on %s runs %s, and %s is installed there: it runs that one from its hand-over on", d.Label(), h.Name, d.Version, installed)
	}
}

// addressOf is the address that a daemon listens on, which has to be one of its host's.
func (x *adopter) addressOf(d *ClusterDaemon, h *api.Host) string {
	address := ipOf(d.Addrs)
	switch {
	case h == nil:
	case address == "" || !slices.Contains(h.Status.Addresses, address):
		x.problem("%s listens on %s by Ceph's word, which is no address of host %s (%s)", d.Label(), cmp.Or(d.Addrs, "nothing"), h.Name, strings.Join(h.Status.Addresses, ", "))
	case d.Type == TypeMon && strings.ReplaceAll(d.Addrs, "/0", "") != (member{d.ID, h.Name, address}).addrs():
		x.problem("%s listens on %s, and Holdfast knows mons at the ports %s (v2) and %s (v1) alone: 'ceph mon enable-msgr2' switches v2 on; a mon at other ports has to be "+
			"replaced by one at these first", d.Label(), d.Addrs, portV2, portV1)
	}
	return address
}

// deviceOf is the identity of the device that an OSD is on, by the label on it, and how it is told.
func (x *adopter) deviceOf(d *ClusterDaemon, h *api.Host) (id, text string) {
	var at []*api.Device
	for i := range h.Status.Devices {
		if dev := &h.Status.Devices[i]; dev.Ceph != nil && strings.EqualFold(dev.Ceph.OSDUUID, d.UUID) {
			at = append(at, dev)
		}
	}
	mapped := strings.Contains(d.Path, "/dm-") || strings.Contains(d.Path, "/mapper/") || len(at) == 1 && (at[0].Kind == api.DeviceMapped || at[0].Kind == api.DeviceRaid)
	switch {
	case d.Store != "" && d.Store != "bluestore":
		x.problem("%s has the object store %s: only BlueStore is run. Make it anew as BlueStore ('ceph osd destroy', then 'ceph-volume') first", d.Label(), d.Store)
	case mapped:
		x.problem("%s on %s lies on device-mapper (%s: LVM, as 'ceph-volume lvm' makes it, or dm-crypt), which is not taken over yet: replace it by an OSD on the whole "+
			"disk or a partition ('ceph-volume raw', or by Holdfast after the adoption), or leave the cluster as it is", d.Label(), h.Name, cmp.Or(d.Path, "its device"))
	case d.Apart != "":
		x.problem("%s on %s has its %s on a device of its own, which is not taken over yet: bring it back to one device ('ceph-bluestore-tool bluefs-bdev-migrate') "+
			"or replace the OSD first", d.Label(), h.Name, d.Apart)
	case len(at) == 0:
		x.problem("%s on %s: no device of the host has its label (uuid %s). An OSD whose data is in a file, and not on a disk or partition, is not taken over", d.Label(), h.Name, d.UUID)
	case len(at) > 1:
		x.problem("%s on %s: %s and %s have the same label (uuid %s): which of them is the OSD's?", d.Label(), h.Name, at[0].ID, at[1].ID, d.UUID)
	case strings.HasPrefix(at[0].ID, "unstable-"):
		x.problem("%s on %s: its device %s has no identity that stays (WWN, serial number, partition UUID)", d.Label(), h.Name, at[0].Path)
	default:
		return at[0].ID, at[0].ID + " (" + at[0].Path + ")"
	}
	return "", cmp.Or(d.Path, "?")
}

// count is how many daemons of a type the cluster has.
func (x *adopter) count(daemonType string) (n int) {
	for i := range x.Facts.Daemons {
		if x.Facts.Daemons[i].Type == daemonType {
			n++
		}
	}
	return n
}

// checkCounts refuses numbers that cannot be declared.
func (x *adopter) checkCounts() {
	hosts := map[string]string{}
	if n := x.count(TypeMon); n%2 == 0 || n > 9 {
		x.problem("the cluster has %s: their number has to be odd, and 9 at most. Add or remove one first", words.Plural(n, "mon"))
	}
	if n := x.count(TypeMgr); n == 0 || n > 5 {
		x.problem("the cluster has %s: it has to have one to five", words.Plural(n, "mgr"))
	}
	for _, m := range x.members {
		if other := hosts[m.Host]; other != "" {
			x.problem("mon.%s and mon.%s are both on host %s: each mon has a host of its own. Remove one of them first", other, m.ID, m.Host)
		}
		hosts[m.Host] = m.ID
	}
}

// leaveAlone tells of what Ceph has beside mons, managers and OSDs.
func (x *adopter) leaveAlone() {
	if len(x.Facts.Others) > 0 {
		x.note("left alone, as they are: %s. Filesystems, object stores and their daemons are not taken over", strings.Join(x.Facts.Others, ", "))
	}
	if x.Facts.Health != healthOK {
		x.note("the cluster is in state %s: it can be adopted so, and is handed over only when all placement groups are active+clean", x.Facts.Health)
	}
}

func (x *adopter) cluster() api.StorageCluster {
	c := api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name, Annotations: map[string]string{AnnotationAdopted: x.Facts.FSID}},
		Spec:       api.StorageClusterSpec{Type: api.StorageCeph, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain, Ceph: &api.CephSpec{Config: x.config()}},
	}
	c.Spec.Network = api.NetworkSpec{Public: firstOf(x.Conf["global"]["public_network"]), Cluster: firstOf(x.Conf["global"]["cluster_network"])}
	c.Spec.Ceph.Mon.Count, c.Spec.Ceph.Mgr.Count = int32(x.count(TypeMon)), int32(x.count(TypeMgr))
	return c
}

// firstOf is the first of several networks: Holdfast knows one.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}

// nodes are the StorageNodes that stand for what there is.
func (x *adopter) nodes() []api.StorageNode {
	var nodes []api.StorageNode
	for _, host := range slices.Sorted(maps.Keys(x.addresses)) {
		nodes = append(nodes, api.StorageNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name + "-" + host, Annotations: map[string]string{AnnotationAdopted: x.Facts.FSID}},
			Spec: api.StorageNodeSpec{
				Type: api.StorageCeph, Cluster: x.Name, NodeSelector: map[string]string{api.LabelHostname: host},
				StorageNetwork: api.StorageNetwork{IPs: []string{x.addresses[host]}}, Devices: x.devices[host],
			},
		})
	}
	return nodes
}

// secrets are the keys that the cluster has. The annotation with the UID of the StorageCluster is set when there is one.
func (x *adopter) secrets() []AdoptedSecret {
	var all []AdoptedSecret
	for _, entity := range slices.Sorted(maps.Keys(x.Facts.Keys)) {
		k := x.Facts.Keys[entity]
		all = append(all, AdoptedSecret{
			Name:        secretName(x.Name, entity),
			Annotations: map[string]string{AnnotationEntity: entity, AnnotationFSID: x.Facts.FSID},
			Data:        map[string][]byte{secretKey: []byte(k.Key), secretKeyring: []byte(keyring(entity, k.Key, k.Caps))},
		})
	}
	return all
}

// daemons are the Daemons as plans of the cluster make them, but that they are only watched.
func (x *adopter) daemons() []api.Daemon {
	view := &engine.View{Cluster: &x.out.Cluster, Nodes: x.out.Nodes, Hosts: x.Hosts}
	p := newPlanner(view, time.Time{})
	p.fsid, p.members, p.osds = x.Facts.FSID, x.members, x.osds
	p.declareServices()
	p.planConfig()
	p.mgrs.seats = x.mgrs
	facts := p.confFacts()
	monmap, monHosts := monParams(p.members)
	var all []api.Daemon
	for _, m := range p.members {
		d := p.monDaemon(m, facts, monmap, monHosts)
		d.Spec.Parameters[ParamMonFounded], d.Spec.Parameters[ParamForeignStore] = "true", x.stores[m.ID]
		all = append(all, d)
	}
	for _, m := range p.mgrs.seats {
		all = append(all, p.mgrDaemon(m, facts))
	}
	for _, o := range p.osds {
		all = append(all, p.osdDaemon(o, facts))
	}
	for i := range all {
		all[i].Spec.State = api.WantWatched
		all[i].Spec.Parameters[api.ParameterForeign] = x.Facts.FSID
	}
	return all
}
