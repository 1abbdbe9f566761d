package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The numbers that the API takes.
const (
	mostMons = 9
	mostMgrs = 5
	// oddMons is why the API refuses others.
	oddMons = "the number of mons must be odd (1, 3, 5, 7, 9): an even number survives no more failures than one " +
		"less, and one more can fail"
)

// mon translates the document of the mons: spec.ceph.mon of the StorageCluster.
func (c *call) mon(d *document) []Write {
	spec := c.ceph().Mon
	return c.members(d, int64(spec.Count), mostMons, spec.HostSelector != nil)
}

// mgr translates the document of the managers: spec.ceph.mgr of the StorageCluster.
func (c *call) mgr(d *document) []Write {
	spec := c.ceph().Mgr
	return c.members(d, int64(spec.Count), mostMgrs, spec.HostSelector != nil)
}

func (c *call) ceph() *api.CephSpec {
	if c.view.Cluster.Spec.Ceph == nil {
		return &api.CephSpec{}
	}
	return c.view.Cluster.Spec.Ceph
}

func (c *call) members(d *document, now, most int64, selector bool) []Write {
	if d.id != "" {
		d.refuse("service_id", "a cluster has one service %s: leave it out", d.kind)
	}
	p := c.place(d)
	n := p.number(d, now)
	switch {
	case n > most:
		d.refuse("placement.count", "%d are too many: a cluster has at most %d: set count, or select fewer hosts", n,
			most)
	case d.kind == kindMon && n > 0 && n%2 == 0:
		d.refuse("placement.count", "%d: %s", n, oddMons)
	case selector && !p.IsEmpty():
		d.refuse("placement", "spec.ceph.%s.hostSelector of StorageCluster %s already chooses the hosts: remove it "+
			"there, or set count alone", d.kind, c.view.Cluster.Name)
	}
	members := fields{}
	members.put("count", n)
	members.put("placement", p.object())
	ceph := fields{d.kind: map[string]any(members)}
	ceph.put("config", c.options(d, d.kind))
	c.networks(d)
	return []Write{d.write(c.object(kindCluster, c.view.Cluster.Name, fields{"ceph": map[string]any(ceph)}),
		p.notes...)}
}

// kindCluster is the kind of the cluster's own object.
const kindCluster = "StorageCluster"

// options are the options of Ceph that a document sets for a section.
func (c *call) options(d *document, section string) map[string]any {
	value := d.take("config")
	in, ok := value.(map[string]any)
	if !ok && value != nil {
		d.refuse("config", "it must be an object: names of options and their values")
	}
	if len(in) == 0 {
		return nil
	}
	options := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch v := in[name].(type) {
		case string:
			options[name] = v
		case bool:
			options[name] = strconv.FormatBool(v)
		case float64:
			options[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			d.refuse("config", "the value of %s must be a text, a number, or true or false", name)
		}
	}
	return map[string]any{section: options}
}

// networks takes out the networks that daemons listen in, where they are those of the cluster.
func (c *call) networks(d *document) {
	public := c.view.Cluster.Spec.Network.Public
	networks, err := texts(d.fields["networks"])
	if err == nil && public != "" && slices.Equal(networks, []string{public}) {
		delete(d.fields, "networks")
	}
}

// declaredMembers are the documents of mons and managers.
func (c *documents) declaredMembers() {
	ceph := c.view.Cluster.Spec.Ceph
	if ceph == nil {
		return
	}
	c.member(kindMon, ceph.Mon.Count, ceph.Mon.Placement)
	c.member(kindMgr, ceph.Mgr.Count, ceph.Mgr.Placement)
}

func (c *documents) member(kind string, count int32, selection *api.HostSelection) {
	placement := fields{}
	if selection != nil {
		placement = selectionOf(c.view, selection)
	}
	placement.put("count", int64(count))
	document := newDocument(kind, "", placement)
	document.put("config", c.config(kind))
	c.add(kind, "", document, nil, int64(count))
}

// config are the options of a section of the cluster.
func (c *documents) config(section string) map[string]any {
	if c.view.Cluster.Spec.Ceph == nil {
		return nil
	}
	options := map[string]any{}
	for name, value := range c.view.Cluster.Spec.Ceph.Config[section] {
		options[name] = fmt.Sprint(value)
	}
	return options
}
