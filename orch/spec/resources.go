package spec

import (
	"regexp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// What Ceph's own orchestrator has where a document says nothing.
const (
	defaultDaemons = 2
	defaultPort    = 80
)

// mostDaemons bounds the daemons of a service with a Placement, and mostMDS those that work, and
// those that stand by.
const (
	mostDaemons = 64
	mostMDS     = 16
)

// The names that file systems and stores may have.
var (
	filesystemName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)
	storeName      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
)

// resource is the resource of a kind and name, or nothing.
func resourceOf[T api.Resource](v *engine.View, name string) (found T, ok bool) {
	for _, r := range engine.OfKind[T](v.Resources) {
		if r.GetName() == name {
			return r, true
		}
	}
	return found, false
}

// mds translates a document of MDSs: a Filesystem. One that is made by it takes the file system as
// Ceph has it.
func (c *call) mds(d *document) []Write {
	if !filesystemName.MatchString(d.id) {
		d.refuse("service_id", "the name of a Filesystem has at most 40 lower-case letters, digits and hyphens and "+
			"begins with a letter: give the file system such a name ('ceph fs rename')")
	}
	f, there := resourceOf[*api.Filesystem](c.view, d.id)
	p := c.place(d)
	active, otherwise := int64(1), int64(defaultDaemons)
	if there {
		active = int64(max(1, f.Spec.ActiveMDS))
		otherwise = active + standbys(f)
	}
	n := p.number(d, otherwise)
	switch {
	case n < active:
		d.refuse("placement.count", "%d are too few: %d MDSs of Filesystem %s work (spec.activeMDS): lower that first",
			n, active, d.id)
	case n-active > mostMDS:
		d.refuse("placement.count", "%d are too many: at most %d MDSs stand by beside %d that work: set count",
			n, mostMDS, active)
	}
	spec := fields{"cluster": c.view.Cluster.Name, "standbyMDS": n - active}
	if !there || f.Spec.Pools == api.PoolsExisting {
		spec["pools"] = string(api.PoolsExisting)
	}
	spec.put("placement", p.object())
	c.networks(d)
	return []Write{d.write(c.object("Filesystem", d.id, spec), p.notes...)}
}

func standbys(f *api.Filesystem) int64 {
	if f.Spec.StandbyMDS == nil {
		return 1
	}
	return int64(*f.Spec.StandbyMDS)
}

// rgw translates a document of gateways: an ObjectStore.
func (c *call) rgw(d *document) []Write {
	if !storeName.MatchString(d.id) {
		d.refuse("service_id", "the name of an ObjectStore has at most 40 lower-case letters, digits and hyphens: "+
			"choose such a name")
	}
	s, there := resourceOf[*api.ObjectStore](c.view, d.id)
	p := c.place(d)
	otherwise, port := int64(defaultDaemons), int64(defaultPort)
	if there {
		otherwise, port = countOf(&s.Spec.Gateways.Placement, defaultGateways), int64(s.Spec.Gateways.Port)
	}
	d.tls(s)
	wanted := d.number("rgw_frontend_port", 1, 65535)
	if wanted == 0 && !there {
		p.note(d, "gateways listen at port %d, Ceph's default", port)
	}
	if wanted == 0 {
		wanted = port
	}
	gateways := fields{"placement": p.counted(d, otherwise)}
	gateways.put("port", wanted)
	c.networks(d)
	spec := fields{"cluster": c.view.Cluster.Name, "gateways": map[string]any(gateways)}
	return []Write{d.write(c.object("ObjectStore", d.id, spec), p.notes...)}
}

// tls refuses what a store does not have: a document names no Secret.
func (d *document) tls(s *api.ObjectStore) {
	has := s != nil && s.Spec.Gateways.TLS != nil
	wants := d.flag("ssl")
	switch {
	case wants && !has:
		d.refuse("ssl", "%s", certificateBySecret)
	case has && !wants:
		d.refuse("ssl", "ObjectStore %s has a certificate: say ssl: true, or remove spec.gateways.tls there", d.id)
	}
}

// counted is a Placement.
func (p *placement) counted(d *document, otherwise int64) map[string]any {
	n := p.number(d, otherwise)
	if n > mostDaemons {
		d.refuse("placement.count", "%d are too many: a service has at most %d: set count", n, mostDaemons)
	}
	o := p.object()
	o["count"] = n
	return o
}

// mirror translates the document of the mirrors of RBD: an RBDMirror.
func (c *call) mirror(d *document) []Write {
	if d.id != "" {
		d.refuse("service_id", "a cluster has one service %s: leave it out", d.kind)
	}
	p := c.place(d)
	name, otherwise := kindMirror, int64(defaultDaemons)
	if m := mirrorOf(c.view); m != nil {
		name, otherwise = m.Name, countOf(&m.Spec.Placement, 1)
	}
	spec := fields{"cluster": c.view.Cluster.Name, "placement": p.counted(d, otherwise)}
	c.networks(d)
	return []Write{d.write(c.object("RBDMirror", name, spec), p.notes...)}
}

// mirrorOf is the RBDMirror that the service rbd-mirror stands for; nil where there is none.
func mirrorOf(v *engine.View) *api.RBDMirror {
	if m, ok := resourceOf[*api.RBDMirror](v, kindMirror); ok {
		return m
	}
	for _, m := range engine.OfKind[*api.RBDMirror](v.Resources) {
		return m
	}
	return nil
}

// defaultGateways are those of an ObjectStore that says nothing.
const defaultGateways = 2

func countOf(p *api.Placement, otherwise int64) int64 {
	if p.Count == nil {
		return otherwise
	}
	return int64(*p.Count)
}

// declaredFilesystem is the document of a Filesystem.
func (c *documents) declaredFilesystem(f *api.Filesystem) {
	placement := selectionOf(c.view, &f.Spec.Placement)
	n := int64(max(1, f.Spec.ActiveMDS)) + standbys(f)
	placement["count"] = n
	c.add(kindMDS, f.Name, newDocument(kindMDS, f.Name, placement), f, n)
}

// declaredStore is the document of an ObjectStore.
func (c *documents) declaredStore(s *api.ObjectStore) {
	g := &s.Spec.Gateways
	document := newDocument(kindRGW, s.Name, c.placementOf(&g.Placement, defaultGateways))
	inner := fields{}
	inner.put("rgw_frontend_port", int64(g.Port))
	inner.put("ssl", g.TLS != nil)
	document.put("spec", inner)
	c.add(kindRGW, s.Name, document, s, countOf(&g.Placement, defaultGateways))
}

// declaredMirror is the document of an RBDMirror.
func (c *documents) declaredMirror(m *api.RBDMirror) {
	placement := c.placementOf(&m.Spec.Placement, 1)
	c.add(kindMirror, "", newDocument(kindMirror, "", placement), m, countOf(&m.Spec.Placement, 1))
}

// placementOf is a PlacementSpec.
func (c *documents) placementOf(p *api.Placement, otherwise int64) fields {
	placement := selectionOf(c.view, &p.HostSelection)
	placement["count"] = countOf(p, otherwise)
	return placement
}
