package spec

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// defaultGroup is the service_id of a document of OSDs that has none.
const defaultGroup = "default"

// classPattern is what the API takes for a device class.
var classPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// osd translates a document of OSDs: a DriveGroup, and options of Ceph for OSDs.
func (c *call) osd(d *document) []Write {
	if d.id == "" {
		d.id = defaultGroup
		d.service = nameOf(d.kind, d.id)
	}
	p := c.place(d)
	if p.IsEmpty() {
		d.refuse("placement", "it must select hosts: name hosts, a label or a pattern")
	}
	if p.count > 0 {
		d.refuse("placement.count", "each selected host has OSDs on its disks: leave the field out")
	}
	spec := fields{"cluster": c.view.Cluster.Name, "placement": p.object()}
	d.disks(spec)
	policy := c.newDevices(d)
	spec["newDevices"] = string(policy)
	c.networks(d)

	o := c.object("DriveGroup", GroupName(d.id), spec)
	if o.GetName() != d.id {
		o.SetAnnotations(map[string]string{AnnotationID: d.id})
	}
	if policy == api.NewDevicesReport {
		p.note(d, "disks that come later are reported, not taken; to have them taken, set spec.ceph.orch.newDevices: "+
			"Take in StorageCluster %s and apply this again", c.view.Cluster.Name)
	}
	writes := []Write{d.write(o, p.notes...)}
	if w := c.osdOptions(d); w != nil {
		w := d.write(w)
		w.Answer = ""
		writes = append(writes, w)
	}
	return writes
}

// osdOptions are the options of Ceph that a document sets for OSDs, in the StorageCluster. Ceph 16
// knows no such field in documents of OSDs, so none is exported: one that is missing takes nothing
// back.
func (c *call) osdOptions(d *document) *unstructured.Unstructured {
	options := c.options(d, kindOSD)
	if options == nil {
		return nil
	}
	return c.object(kindCluster, c.view.Cluster.Name, fields{"ceph": map[string]any{"config": options}})
}

// group is the DriveGroup of a document, or nil.
func (c *call) group(d *document) *api.DriveGroup {
	for _, g := range engine.OfKind[*api.DriveGroup](c.view.Resources) {
		if g.Name == GroupName(d.id) {
			return g
		}
	}
	return nil
}

// newDevices is what becomes of disks that come later: what the group or the cluster says.
func (c *call) newDevices(d *document) api.NewDevicePolicy {
	if d.flag("unmanaged") {
		return api.NewDevicesHold
	}
	if policyOf(c.ceph()) == api.NewDevicesTake {
		return api.NewDevicesTake
	}
	if g := c.group(d); g != nil && g.Spec.NewDevices == api.NewDevicesTake {
		return api.NewDevicesTake
	}
	return api.NewDevicesReport
}

// policyOf is spec.ceph.orch.newDevices; empty where nothing is said.
func policyOf(ceph *api.CephSpec) api.NewDevicePolicy {
	if ceph.Orch == nil {
		return ""
	}
	return ceph.Orch.NewDevices
}

// takesMore says whether a document has disks taken that its group only reports, as the cluster's
// policy has changed since.
func (c *call) takesMore(d *document) bool {
	g := c.group(d)
	return d.kind == kindOSD && d.fields["unmanaged"] == nil && g != nil &&
		policyOf(c.ceph()) == api.NewDevicesTake && g.Spec.NewDevices != api.NewDevicesTake
}

// disks writes what a document says of disks.
func (d *document) disks(spec fields) {
	or := strings.EqualFold(d.text("filter_logic"), "OR")
	for _, devices := range []struct{ field, to string }{
		{"data_devices", "dataDevices"}, {"db_devices", "dbDevices"}, {"wal_devices", "walDevices"},
	} {
		spec.put(devices.to, d.filters(devices.field, or))
	}
	if spec["dataDevices"] == nil {
		d.refuse("data_devices", "it must select disks, such as {all: true}")
	}
	spec.put("osdsPerDevice", d.number("osds_per_device", 1, 16))
	spec.put("encrypted", d.flag("encrypted"))
	spec.put("dbSize", d.size("block_db_size"))
	spec.put("dbSlots", d.number("db_slots", 1, 128))
	spec.put("walSize", d.size("block_wal_size"))
	spec.put("walSlots", d.number("wal_slots", 1, 128))
	class := d.text("crush_device_class")
	if class != "" && !classPattern.MatchString(class) {
		d.refuse("crush_device_class", "%s is no device class: it has at most 32 lower-case letters, digits, hyphens "+
			"and underscores, and begins with a letter", class)
	}
	spec.put("deviceClass", class)
	for _, need := range []struct{ devices, field, to string }{
		{"db_devices", "block_db_size", "dbSize"},
		{"db_devices", "db_slots", "dbSlots"},
		{"wal_devices", "block_wal_size", "walSize"},
		{"wal_devices", "wal_slots", "walSlots"},
	} {
		if spec[need.to] != nil && spec[strings.TrimSuffix(need.devices, "_devices")+"Devices"] == nil {
			d.refuse(need.field, "it says how the disks of %s are divided: add these, or leave it out", need.devices)
		}
	}
}

// sizePattern is a size as ceph-volume reads it (ceph_volume/util/disk.py, Size.parse): units are
// powers of 1024.
var sizePattern = regexp.MustCompile(`^([0-9]+(?:[.][0-9]+)?) *(?:([KMGTP])B?|B)?$`)

// size takes a size out, and writes it as a quantity; empty where there is none.
func (d *document) size(name string) string {
	value := d.take(name)
	if value == nil {
		return ""
	}
	text := strings.ToUpper(fmt.Sprint(value))
	if n, ok := value.(float64); ok {
		text = new(big.Float).SetFloat64(n).Text('f', -1)
	}
	parts := sizePattern.FindStringSubmatch(text)
	if parts == nil {
		d.refuse(name, "%v is no size: write bytes, or a size such as 60G", value)
		return ""
	}
	bytes, _ := new(big.Rat).SetString(parts[1])
	power := strings.Index("KMGTP", parts[2]) + 1
	if parts[2] == "" {
		power = 0
	}
	bytes.Mul(bytes, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*power))))
	n := new(big.Int).Quo(bytes.Num(), bytes.Denom())
	if !n.IsInt64() {
		d.refuse(name, "%v is too much: write a size such as 60G", value)
		return ""
	}
	return resource.NewQuantity(n.Int64(), resource.BinarySI).String()
}

// declaredGroup is the document of a DriveGroup.
func (c *documents) declaredGroup(g *api.DriveGroup) {
	document := newDocument(kindOSD, GroupID(g), selectionOf(c.view, &g.Spec.Placement))
	document.put("unmanaged", g.Spec.NewDevices == api.NewDevicesHold)
	disks, ok := disksOf(&g.Spec)
	if !ok { // Ceph has no words for it
		document["unmanaged"], disks = true, allDevices()
	}
	document["spec"] = map[string]any(disks)
	c.add(kindOSD, GroupID(g), document, g, int64(len(g.Status.Devices)))
}

// disksOf is what a DriveGroup says of disks; ok is false where Ceph has no words for it.
func disksOf(g *api.DriveGroupSpec) (disks fields, ok bool) {
	disks = fields{}
	lists := []struct {
		name    string
		filters []api.DriveFilter
	}{{"data_devices", g.DataDevices}, {"db_devices", g.DBDevices}, {"wal_devices", g.WALDevices}}
	or := false
	for _, l := range lists {
		or = or || len(l.filters) > 1
	}
	for _, l := range lists {
		selection, ok := deviceSelection(l.filters, or)
		if !ok {
			return nil, false
		}
		disks.put(l.name, selection)
	}
	if or {
		disks["filter_logic"] = "OR"
	}
	disks.put("encrypted", g.Encrypted)
	disks.put("osds_per_device", int64(g.OSDsPerDevice))
	disks.put("block_db_size", sizeText(g.DBSize))
	disks.put("db_slots", int64(g.DBSlots))
	disks.put("block_wal_size", sizeText(g.WALSize))
	disks.put("wal_slots", int64(g.WALSlots))
	disks.put("crush_device_class", g.DeviceClass)
	return disks, true
}

// sizeText is a size as ceph-volume reads it.
func sizeText(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	n, unit := q.Value(), 0
	for n >= 1024 && n%1024 == 0 && unit < 4 {
		n, unit = n/1024, unit+1
	}
	return strings.TrimSpace(fmt.Sprintf("%d%c", n, " KMGT"[unit]))
}
