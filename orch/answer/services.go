package answer

import (
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Service is a ServiceDescription.
type Service struct {
	Spec        map[string]any `json:"spec"`
	Size        int            `json:"size"`
	Running     int            `json:"running"`
	Ports       []int          `json:"ports"`
	Created     string         `json:"created,omitempty"`
	Deleted     string         `json:"deleted,omitempty"`
	LastRefresh string         `json:"last_refresh,omitempty"`

	name string
}

func services(c *Call) (any, error) {
	a, err := args[struct {
		Type string `json:"service_type"`
		Name string `json:"service_name"`
	}](c)
	if err != nil {
		return nil, err
	}
	rows := []Service{}
	for _, s := range c.services() {
		kind, _, _ := strings.Cut(s.name, ".")
		if is(a.Type, kind) && is(a.Name, s.name) {
			rows = append(rows, s)
		}
	}
	return rows, nil
}

// services are what is declared, and what runs beside it.
func (c *Call) services() []Service {
	running, ports := map[string][2]int{}, map[string][]int{}
	for _, d := range c.daemons() {
		n := running[d.Service]
		n[0]++
		if d.Status == statusRunning {
			n[1]++
		}
		running[d.Service], ports[d.Service] = n, d.Ports
	}
	declared := c.declared()
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !slices.ContainsFunc(declared, func(s Service) bool { return s.name == name }) {
			declared = append(declared, Service{name: name, Spec: specOf(name, nil), Size: running[name][0]})
			declared[len(declared)-1].Spec["unmanaged"] = true
		}
	}
	for i := range declared {
		s := &declared[i]
		s.Running, s.LastRefresh = running[s.name][1], stamp(c.Now)
		s.Size, s.Ports = max(s.Size, running[s.name][0]), slices.Concat([]int{}, ports[s.name])
	}
	slices.SortFunc(declared, func(a, b Service) int { return strings.Compare(a.name, b.name) })
	return declared
}

// declared are the services that resources declare.
func (c *Call) declared() []Service {
	var all []Service
	add := func(name string, size int, of api.Resource, placement map[string]any) {
		s := Service{name: name, Spec: specOf(name, placement), Size: size}
		s.Created = stamp(c.View.Cluster.CreationTimestamp.Time)
		if of != nil {
			s.Created = stamp(of.GetCreationTimestamp().Time)
			if at := of.GetDeletionTimestamp(); at != nil {
				s.Deleted = stamp(at.Time)
			}
		}
		all = append(all, s)
	}
	if spec := c.View.Cluster.Spec.Ceph; spec != nil {
		add("mon", int(spec.Mon.Count), nil, counted(spec.Mon.Count))
		add("mgr", int(spec.Mgr.Count), nil, counted(spec.Mgr.Count))
	}
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		add("osd."+g.Name, len(g.Status.Devices), g, selection(&g.Spec.Placement))
	}
	for _, f := range engine.OfKind[*api.Filesystem](c.View.Resources) {
		placement := selection(&f.Spec.Placement)
		n := max(f.Spec.ActiveMDS, 1)
		if f.Spec.StandbyMDS != nil {
			n += *f.Spec.StandbyMDS
			placement["count"] = n
		}
		add("mds."+f.Name, int(n), f, placement)
	}
	for _, s := range engine.OfKind[*api.ObjectStore](c.View.Resources) {
		add("rgw."+s.Name, countOf(&s.Spec.Gateways.Placement), s, placementOf(&s.Spec.Gateways.Placement))
	}
	for _, m := range engine.OfKind[*api.RBDMirror](c.View.Resources) {
		add("rbd-mirror", countOf(&m.Spec.Placement), m, placementOf(&m.Spec.Placement))
	}
	return all
}

// specOf is a ServiceSpec as JSON.
func specOf(name string, placement map[string]any) map[string]any {
	kind, id, _ := strings.Cut(name, ".")
	spec := map[string]any{"service_type": kind}
	if id != "" {
		spec["service_id"] = id
	}
	if len(placement) > 0 {
		spec["placement"] = placement
	}
	return spec
}

func counted(n int32) map[string]any { return map[string]any{"count": n} }

func countOf(p *api.Placement) int {
	if p.Count == nil {
		return 0
	}
	return int(*p.Count)
}

// placementOf is a PlacementSpec.
func placementOf(p *api.Placement) map[string]any {
	spec := selection(&p.HostSelection)
	if p.Count != nil {
		spec["count"] = *p.Count
	}
	return spec
}

// selection is the part of a PlacementSpec that says which hosts. Ceph takes hosts, a label or a
// pattern, and no two of them: the first that there is.
func selection(s *api.HostSelection) map[string]any {
	spec := map[string]any{}
	switch {
	case len(s.Hosts) > 0:
		spec["hosts"] = s.Hosts
	case len(s.Labels) > 0:
		spec["label"] = labelOf(s.Labels)
	case s.Pattern != "":
		spec["host_pattern"] = s.Pattern
	}
	return spec
}

// labelOf is the label of 'ceph orch' among those that are asked for; else all of them in words, as
// Kubernetes writes a selector.
func labelOf(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if name, is := strings.CutPrefix(key, wire.LabelPrefix); is && len(labels) == 1 {
			return name
		}
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, ",")
}

// groupsOfOSDs are the DriveGroups of OSDs that have one, by the names of their Daemons.
func (c *Call) groupsOfOSDs() map[string]string {
	groups := map[[2]string]string{}
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		for _, d := range g.Status.Devices {
			groups[[2]string{d.Host, d.ID}] = g.Name
		}
	}
	of := map[string]string{}
	for i := range c.View.Daemons {
		d := &c.View.Daemons[i]
		for _, device := range d.Spec.Devices {
			for _, id := range []string{device.ID, device.Of} {
				if group := groups[[2]string{d.Spec.Host, id}]; group != "" && id != "" {
					of[d.Name] = group
				}
			}
		}
	}
	return of
}
