package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// LabelNoSchedule is the label by which Ceph shows a host that is drained.
const LabelNoSchedule = "_no_schedule"

// labelName is what may follow LabelPrefix, so that it is a label of Kubernetes.
var labelName = regexp.MustCompile(`^[-A-Za-z0-9_.]{0,56}[A-Za-z0-9]$`)

// host translates a HostSpec: a StorageNode without devices, where the cluster has none on the
// host, and labels of the Host.
func (c *call) host(d *document) []Write {
	addr := d.text("addr")
	h := c.hostNamed(d.id)
	if h == nil {
		d.refuse("hostname", "host %s has not joined Holdfast: %s", d.id, HowToJoin)
		return nil
	}
	d.address(h, addr)
	d.status(h)
	labels := d.hostLabels(h)
	d.location(h, labels)
	keepLabels(h, labels)

	first := d.write(c.node(d, h, addr))
	first.Answer = fmt.Sprintf("Added host '%s' with addr '%s'", d.id, cmp.Or(addr, d.id))
	writes := []Write{first}
	if !c.isLabelled(h.Name, labels) {
		w := d.write(hostObject(h.Name, labels))
		w.Answer = ""
		writes = append(writes, w)
	}
	return writes
}

// isLabelled says whether a host of the view has labels already.
func (c *call) isLabelled(name string, labels map[string]string) bool {
	for i := range c.view.Hosts {
		if c.view.Hosts[i].Name == name {
			return len(labels) == 0 || selects(labels, c.view.Hosts[i].Labels)
		}
	}
	return false
}

// address refuses an address that is not the host's.
func (d *document) address(h *api.Host, addr string) {
	if addr == "" || addr == d.id || addr == h.Hostname() {
		return
	}
	if !slices.ContainsFunc(h.Status.Addresses, func(has string) bool { return sameAddress(has, addr) }) {
		d.refuse("addr", "%s is not an address of host %s, which has %s: leave it out, or give one of these",
			addr, d.id, cmp.Or(strings.Join(h.Status.Addresses, ", "), "reported none yet"))
	}
}

func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Unmap() == y.Unmap()
}

// status refuses a state that the host does not have: Ceph's own commands change it.
func (d *document) status(h *api.Host) {
	switch status := strings.ToLower(d.text("status")); status {
	case "", "offline":
	case "maintenance":
		if h.ModeOf() != api.HostMaintenance {
			d.refuse("status", "a document does not begin maintenance: use 'ceph orch host maintenance enter %s'", d.id)
		}
	default:
		d.refuse("status", "%s is no state that a document can ask for: leave it out", status)
	}
}

// hostLabels are the labels of 'ceph orch' that the document names.
func (d *document) hostLabels(h *api.Host) map[string]string {
	labels := map[string]string{}
	for _, name := range d.list("labels") {
		switch {
		case name == LabelNoSchedule && h.ModeOf() == api.HostDrain:
		case name == LabelNoSchedule:
			d.refuse("labels", "label %s does not drain a host: use 'ceph orch host drain %s'", name, d.id)
		case !labelName.MatchString(name):
			d.refuse("labels", "%s is no label: it has at most 57 letters, digits, hyphens, underscores and dots, "+
				"and ends with a letter or digit", name)
		default:
			labels[wire.LabelPrefix+name] = ""
		}
	}
	return labels
}

// keepLabels adds to what a document sets the labels that the host has of 'ceph orch' and of its
// place: what a manager applied before, and leaves out now, is taken away.
func keepLabels(h *api.Host, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	for label, value := range h.Labels {
		if strings.HasPrefix(label, wire.LabelPrefix) || slices.Contains(api.LocationLabels(), label) {
			labels[label] = value
		}
	}
}

// location sets labels that say where the host is, where it has none.
func (d *document) location(h *api.Host, labels map[string]string) {
	value := d.take("location")
	in, ok := value.(map[string]any)
	if !ok && value != nil {
		d.refuse("location", "it must be an object such as {rack: r1}")
	}
	for _, level := range slices.Sorted(maps.Keys(in)) {
		name, _ := in[level].(string)
		label := ""
		for _, l := range api.LocationLabels() {
			if strings.HasSuffix(l, "/"+level) {
				label = l
			}
		}
		switch has := h.Labels[label]; {
		case level == "root" && name == "default":
		case label == "" || !labelName.MatchString(name):
			d.refuse("location", "%s=%s is no place that a label can have: Holdfast knows chassis, rack, row, "+
				"datacenter, zone and region", level, name)
		case has != "" && has != name:
			d.refuse("location", "label %s of host %s is %s: change it there ('holdfast host label %s %s=%s')",
				label, d.id, has, d.id, label, name)
		default:
			labels[label] = name
		}
	}
}

// node is the StorageNode by which the cluster has a host; nil where there is one.
func (c *call) node(d *document, h *api.Host, addr string) *unstructured.Unstructured {
	if c.nodeOf(h) != nil {
		return nil
	}
	spec := fields{
		"type": string(api.StorageCeph), "cluster": c.view.Cluster.Name,
		"nodeSelector": map[string]any{api.LabelHostname: h.Hostname()},
	}
	if c.inPublic(addr) {
		spec["storageNetwork"] = map[string]any{"ips": []any{addr}}
	}
	return c.object("StorageNode", c.view.Cluster.Name+"-"+strings.ToLower(d.id), spec)
}

// nodeOf is the StorageNode by which the cluster has a host, or nil.
func (c *call) nodeOf(h *api.Host) *api.StorageNode {
	for i := range c.view.Nodes {
		if n := &c.view.Nodes[i]; n.Status.Host == h.Name || selects(n.Spec.NodeSelector, h.Labels) {
			return n
		}
	}
	return nil
}

func selects(selector, labels map[string]string) bool {
	for key, want := range selector {
		if have, ok := labels[key]; !ok || have != want {
			return false
		}
	}
	return len(selector) > 0
}

// inPublic says whether daemons can listen at an address. Another one is where Ceph's own
// orchestrator would reach the host, which Holdfast does not do.
func (c *call) inPublic(addr string) bool {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return false
	}
	public := c.view.Cluster.Spec.Network.Public
	network, err := netip.ParsePrefix(public)
	return public == "" || err == nil && network.Contains(ip.Unmap())
}

func hostObject(name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(api.GroupVersion.String())
	o.SetKind("Host")
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// label gives the hosts of a call the labels that documents of the same call give them, for the
// placements of other documents.
func (c *call) label(docs []*document) {
	c.used, c.coming = c.view.UsedHosts(), map[string]bool{}
	if !slices.ContainsFunc(docs, func(d *document) bool { return d.kind == kindHost }) {
		return
	}
	c.hosts = slices.Clone(c.hosts)
	for _, d := range docs {
		h := c.hostNamed(d.id)
		if d.kind != kindHost || h == nil {
			continue
		}
		c.coming[h.Name] = true
		h.Labels = maps.Clone(h.Labels)
		names, _ := texts(d.fields["labels"])
		for _, name := range names {
			if h.Labels == nil {
				h.Labels = map[string]string{}
			}
			h.Labels[wire.LabelPrefix+name] = ""
		}
	}
}
