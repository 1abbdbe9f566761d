package convert

import (
	"cmp"
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Fields of a document, in the words of messages.
const (
	fieldNodes = "spec.storageNodes"
	imageNote  = "left out: image %s. Holdfast runs the programs that the host has."
)

// parent is the cluster that a node stands in; the zero value where the node stands alone.
type parent struct {
	name, namespace, storage string
}

// cluster is a StorageCluster in QuarterMaster's last form, which holds its nodes.
func (r *reader) cluster(n *yaml.Node) []document {
	top, _ := r.fields(n, "a StorageCluster", "apiVersion", "kind", "metadata", "spec", "status")
	m := r.metadata(n, top["metadata"])
	spec, rest := r.fields(top["spec"], "spec", "type", "image", "storageNodes", "glusterfs", "torus")
	s := clusterSpec{Type: r.storage(cmp.Or(spec["type"], n), r.text(spec["type"], "spec.type")), Rest: rest}
	c := newDocument(n, "StorageCluster", metadata{}, nil)
	c.take(m)
	if image := r.text(spec["image"], "spec.image"); image != "" {
		c.note(imageNote, image)
	}
	heketi, own := r.fields(spec["glusterfs"], "spec.glusterfs", "heketiImage", "cluster")
	for _, name := range []string{"heketiImage", "cluster"} {
		if text := r.text(heketi[name], name); text != "" {
			c.note("left out: glusterfs.%s %s. There is no heketi: Holdfast itself places bricks.", name, text)
		}
	}
	s.GlusterFS = own
	if s.Type == string(api.StorageTorus) {
		_, s.Torus = r.fields(spec["torus"], "spec.torus")
	}
	c.Spec = s
	all := []document{c}
	for i, item := range r.list(spec["storageNodes"], fieldNodes) {
		all = append(all, r.node(item, i, parent{m.Name, m.Namespace, s.Type}))
	}
	return all
}

// storageNode is a StorageNode in QuarterMaster's first form, which stands alone.
func (r *reader) storageNode(n *yaml.Node) []document {
	top, _ := r.fields(n, "a StorageNode", "apiVersion", "kind", "metadata", "spec", "status")
	m := r.metadata(n, top["metadata"])
	if top["spec"] == nil {
		r.fault(n, "the StorageNode has no spec")
		return nil
	}
	d := r.node(top["spec"], 0, parent{})
	d.take(m)
	d.at = n
	return []document{d}
}

// take gives a document its metadata, without what kubectl keeps of the object for itself.
func (d *document) take(m metadata) {
	const kubectls = "kubectl.kubernetes.io/last-applied-configuration"
	if _, is := m.Annotations[kubectls]; is {
		delete(m.Annotations, kubectls)
		d.note("left out: annotation %s. It is kubectl's copy of the object in its old form.", kubectls)
	}
	d.Metadata = m
}

func (r *reader) metadata(n, at *yaml.Node) metadata {
	r2 := *r
	r2.keeps = true // what the server writes, such as uid, is left out
	fields, _ := r2.fields(at, "metadata", "name", "namespace", "labels", "annotations")
	m := metadata{
		Name: r.text(fields["name"], "metadata.name"), Namespace: r.text(fields["namespace"], "metadata.namespace"),
		Labels:      r.labels(fields["labels"], "metadata.labels"),
		Annotations: r.labels(fields["annotations"], "metadata.annotations"),
	}
	if m.Name == "" {
		r.fault(cmp.Or(at, n), "metadata.name is missing")
		return m
	}
	r.checkName(fields["name"], m.Name)
	return m
}

// storage is the type of a cluster or node, which has to be one that Holdfast runs.
func (r *reader) storage(n *yaml.Node, storage string) string {
	switch storage {
	case string(api.StorageGlusterFS), string(api.StorageTorus):
	case "":
		r.fault(n, "the type is missing: write type: glusterfs or type: torus")
	default:
		r.fault(n, "Holdfast has no QuarterMaster type %s: it converts glusterfs and torus; "+
			"declare the storage anew", storage)
	}
	return storage
}

// node is the spec of a node. One in a cluster is named like its host.
func (r *reader) node(n *yaml.Node, i int, of parent) document {
	f, rest := r.fields(n, "a node", "type", "image", "nodeName", "nodeSelector", "storageNetwork", "devices",
		"directories", "glusterfs", "torus", "nfs", "cluster")
	d := newDocument(n, "StorageNode", metadata{Namespace: of.namespace}, nil)
	if image := r.text(f["image"], "image"); image != "" {
		d.note(imageNote, image)
	}
	if f["nfs"] != nil {
		r.fault(f["nfs"], "a node has no nfs section: remove it, and declare an NFSExport of a Volume instead")
	}
	s := nodeSpec{
		Type: r.typeIn(n, f["type"], of), Cluster: cmp.Or(of.name, r.text(f["cluster"], "cluster")),
		NodeSelector: r.selector(n, f), StorageNetwork: r.network(f["storageNetwork"]),
		Devices: r.texts(f["devices"], "devices"), Directories: r.texts(f["directories"], "directories"), Rest: rest,
	}
	r.special(n, f, &s, &d, of)
	d.Spec = s
	if of.name != "" {
		d.Metadata.Name = cmp.Or(s.NodeSelector[api.LabelHostname], fmt.Sprintf("%s-%d", of.name, i+1))
		r.checkName(n, d.Metadata.Name)
	}
	return d
}

func (r *reader) typeIn(n, given *yaml.Node, of parent) string {
	storage := r.text(given, "type")
	if of.name != "" && (storage == "" || storage == of.storage) {
		return of.storage // which was checked
	}
	if of.name != "" {
		r.fault(given, "type %s is not that of the cluster, %s: a node has the type of its cluster",
			storage, of.storage)
	}
	return r.storage(cmp.Or(given, n), storage)
}

func (r *reader) selector(n *yaml.Node, f map[string]*yaml.Node) map[string]string {
	name, labels := r.text(f["nodeName"], "nodeName"), r.labels(f["nodeSelector"], "nodeSelector")
	switch {
	case name != "" && len(labels) > 0:
		r.fault(f["nodeSelector"], "nodeName and nodeSelector both choose the host: remove one of them")
	case name != "":
		labels = map[string]string{api.LabelHostname: name}
	case len(labels) == 0:
		r.fault(n, "the node names no host: write nodeName: HOST, as 'holdfast get hosts' shows it")
	}
	return labels
}

func (r *reader) network(n *yaml.Node) *network {
	f, _ := r.fields(n, "storageNetwork", "ips")
	ips := r.texts(f["ips"], "storageNetwork.ips")
	for _, ip := range ips {
		if _, err := netip.ParseAddr(ip); err != nil {
			r.fault(f["ips"], "%s of storageNetwork.ips is no IP address: write the address of the host in the "+
				"storage network", ip)
		}
	}
	if len(ips) == 0 {
		return nil
	}
	return &network{ips}
}

// special is what one storage system alone has.
func (r *reader) special(n *yaml.Node, f map[string]*yaml.Node, s *nodeSpec, d *document, of parent) {
	if s.Type == string(api.StorageTorus) {
		if s.Torus = f["torus"]; s.Torus != nil {
			r.detach(s.Torus)
		}
		if size, _ := (&reader{keeps: true}).fields(s.Torus, "torus", "size"); size["size"] == nil {
			r.fault(cmp.Or(s.Torus, n), "torus.size is missing, and QuarterMaster had none: write how large the "+
				"node's store is, such as torus: {size: 20Gi}")
		}
		return
	}
	g, _ := r.fields(f["glusterfs"], "glusterfs", "cluster", "node", "zone")
	s.GlusterFS = &glusterNode{Cluster: r.text(g["cluster"], "glusterfs.cluster"), Zone: r.zone(g["zone"])}
	if id := s.GlusterFS.Cluster; of.name != "" && id != of.name && id != "" {
		d.note("left out: glusterfs.cluster %s, heketi's id of the cluster. The node belongs to StorageCluster %s.",
			id, of.name)
		s.GlusterFS.Cluster = ""
	}
	if id := r.text(g["node"], "glusterfs.node"); id != "" {
		d.note("left out: glusterfs.node %s, heketi's id of the node.", id)
	}
}
