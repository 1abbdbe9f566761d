package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// topology is heketi's topology file. Its clusters have no names: they get the one of the reader, with
// a number where there are several.
func (r *reader) topology(n *yaml.Node) (all []document) {
	top, _ := r.fields(n, "a topology", "clusters")
	clusters := r.list(top["clusters"], "clusters")
	for i, c := range clusters {
		of := parent{name: r.name, storage: string(api.StorageGlusterFS)}
		if len(clusters) > 1 {
			of.name = fmt.Sprintf("%s-%d", r.name, i+1)
		}
		all = append(all, r.heketiCluster(c, of)...)
	}
	if len(all) == 0 {
		r.fault(n, "the topology has no clusters")
	}
	return all
}

func (r *reader) heketiCluster(n *yaml.Node, of parent) []document {
	f, _ := r.fields(n, "a cluster", "nodes", "block", "file")
	c := newDocument(n, "StorageCluster", metadata{Name: of.name}, clusterSpec{Type: of.storage})
	if r.text(f["block"], "block") == "true" {
		c.note("left out: block. Holdfast has no block volumes on GlusterFS.")
	}
	all := []document{c}
	for _, item := range r.list(f["nodes"], "nodes") {
		all = append(all, r.heketiNode(item, of))
	}
	if len(all) == 1 {
		r.fault(n, "the cluster has no nodes")
	}
	return all
}

func (r *reader) heketiNode(n *yaml.Node, of parent) document {
	d := newDocument(n, "StorageNode", metadata{}, nil)
	f, _ := r.fields(n, "an entry of nodes", "node", "devices")
	node, _ := r.fields(cmp.Or(f["node"], n), "node", "hostnames", "zone", "tags")
	names, _ := r.fields(cmp.Or(node["hostnames"], n), "hostnames", "manage", "storage")
	manage := r.texts(names["manage"], "hostnames.manage")
	d.Metadata.Name = r.host(cmp.Or(names["manage"], n), manage)
	for _, name := range manage[min(1, len(manage)):] {
		d.note("left out: hostnames.manage %s. Holdfast knows the host by one name, %s.", name, d.Metadata.Name)
	}
	if node["tags"] != nil {
		d.note("left out: tags of the node. Holdfast places bricks by zone and free space.")
	}
	d.Spec = nodeSpec{
		Type: of.storage, Cluster: of.name, NodeSelector: map[string]string{api.LabelHostname: d.Metadata.Name},
		StorageNetwork: r.storageOf(names, &d), Devices: r.heketiDevices(f["devices"], &d),
		GlusterFS: &glusterNode{Zone: r.zone(node["zone"])},
	}
	return d
}

// host is the name of the host, which heketi reaches by it. Holdfast finds no host by an address.
func (r *reader) host(n *yaml.Node, names []string) string {
	if len(names) == 0 {
		r.fault(n, "hostnames.manage is missing: write the name of the host, as 'holdfast get hosts' shows it")
		return ""
	}
	if _, err := netip.ParseAddr(names[0]); err == nil {
		r.fault(n, "hostnames.manage %s is an address, and Holdfast finds hosts by name: "+
			"write the name of the host, as 'holdfast get hosts' shows it", names[0])
	} else {
		r.checkName(n, names[0])
	}
	return names[0]
}

// storageOf are the node's addresses for storage traffic.
func (r *reader) storageOf(names map[string]*yaml.Node, d *document) *network {
	var ips []string
	for _, name := range r.texts(names["storage"], "hostnames.storage") {
		_, err := netip.ParseAddr(name)
		switch {
		case err == nil:
			ips = append(ips, name)
		case name == d.Metadata.Name:
			d.note("left out: hostnames.storage %s, which is no address. Holdfast uses the host's first one; "+
				"spec.storageNetwork.ips names another.", name)
		default:
			r.fault(names["storage"], "hostnames.storage %s is a name, and Holdfast needs the address: "+
				"write the IP address of %s", name, name)
		}
	}
	if len(ips) == 0 {
		return nil
	}
	return &network{ips}
}

// heketiDevices are texts, or since heketi 7 maps.
func (r *reader) heketiDevices(n *yaml.Node, d *document) (devices []string) {
	for _, item := range r.list(n, "devices") {
		name := r.heketiDevice(item, d)
		switch {
		case name == "":
			r.fault(item, "the device has no name: write the path of the device")
		case slices.Contains(devices, name):
			r.fault(item, "devices names %s twice: remove one of them", name)
		default:
			devices = append(devices, name)
		}
	}
	return devices
}

// heketiDevice is the path of a device.
func (r *reader) heketiDevice(n *yaml.Node, d *document) string {
	if n = plain(n); n == nil || n.Kind == yaml.ScalarNode {
		return r.text(n, "each of devices")
	}
	f, _ := r.fields(n, "a device", "name", "destroydata", "tags")
	name := r.text(f["name"], "name")
	if r.text(f["destroydata"], "destroydata") == "true" {
		d.note("left out: destroydata of %s. Holdfast refuses a device that holds anything; "+
			"'holdfast device wipe' empties it.", name)
	}
	if f["tags"] != nil {
		d.note("left out: tags of %s. Holdfast places bricks by zone and free space.", name)
	}
	return name
}
