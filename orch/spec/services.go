package spec

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Service is one that is declared.
type Service struct {
	// Name is as 'ceph orch ls' shows it.
	Name string
	// Document is its ServiceSpec, as ServiceSpec.from_json takes it.
	Document map[string]any
	// Of is the resource that declares it; nil for mons and managers, which the StorageCluster
	// does.
	Of api.Resource
	// Size is how many daemons it has; of DriveGroups: disks, or parts of them, that it has taken.
	Size int
}

// documents are those of a view while they are made.
type documents struct {
	view     *engine.View
	services []Service
}

func (c *documents) add(kind, id string, document fields, of api.Resource, size int64) {
	s := Service{Name: nameOf(kind, id), Document: document, Of: of, Size: int(size)}
	c.services = append(c.services, s)
}

// Services are all that are declared: mon, mgr, osd.GROUP, mds.FS, rgw.STORE, rbd-mirror.
func Services(v *engine.View) []Service {
	c := &documents{view: v}
	c.declaredMembers()
	for _, g := range engine.OfKind[*api.DriveGroup](v.Resources) {
		c.declaredGroup(g)
	}
	for _, f := range engine.OfKind[*api.Filesystem](v.Resources) {
		c.declaredFilesystem(f)
	}
	for _, s := range engine.OfKind[*api.ObjectStore](v.Resources) {
		c.declaredStore(s)
	}
	if m := mirrorOf(v); m != nil {
		c.declaredMirror(m)
	}
	return c.services
}

// IsDeleted says whether a service is being deleted.
func (s *Service) IsDeleted() bool { return s.Of != nil && s.Of.GetDeletionTimestamp() != nil }

// Documents are the ServiceSpecs of everything that is declared and is not being deleted, by the
// names of the services: what is exported ('ceph orch ls --export') changes nothing when it is
// applied.
func Documents(v *engine.View) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, s := range Services(v) {
		if !s.IsDeleted() {
			all[s.Name] = s.Document
		}
	}
	return all
}

// Undeclared is the ServiceSpec of a service that has daemons and that nothing declares. To apply
// it changes nothing.
func Undeclared(service string) map[string]any {
	kind, id, _ := strings.Cut(service, ".")
	d := newDocument(kind, id, nil)
	d["unmanaged"] = true
	if kind == kindOSD { // Ceph takes none without these
		d["placement"], d["spec"] = map[string]any{"host_pattern": "*"}, allDevices()
	}
	return d
}

// allDevices are those of a document that Ceph leaves unread, because it is unmanaged.
func allDevices() map[string]any {
	return map[string]any{"data_devices": map[string]any{"all": true}}
}

func newDocument(kind, id string, placement fields) fields {
	d := fields{"service_type": kind}
	d.put("service_id", id)
	d.put("placement", placement)
	return d
}
