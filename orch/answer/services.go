package answer

import (
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/spec"
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
	running, ports := c.running()
	declared := c.declared()
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !slices.ContainsFunc(declared, func(s Service) bool { return s.name == name }) {
			declared = append(declared, Service{name: name, Spec: spec.Undeclared(name), Size: running[name][0]})
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

// running are how many daemons each service has, and how many of them run, and the ports of one.
func (c *Call) running() (running map[string][2]int, at map[string][]int) {
	running, at = map[string][2]int{}, map[string][]int{}
	silent, osds := c.silent(), c.groupsOfOSDs()
	for i := range c.View.Daemons {
		d := &c.View.Daemons[i]
		service := spec.ServiceOf(d, osds[d.Name])
		n := running[service]
		n[0]++
		if status, _ := statusOf(d); status == statusRunning && silent[d.Spec.Host] == "" {
			n[1]++
		}
		running[service], at[service] = n, ports(d)
	}
	return running, at
}

// declared are the services that resources declare.
func (c *Call) declared() []Service {
	var all []Service
	for _, d := range spec.Services(c.View) {
		s := Service{name: d.Name, Spec: d.Document, Size: d.Size}
		s.Created = stamp(c.View.Cluster.CreationTimestamp.Time)
		if d.Of != nil {
			s.Created = stamp(d.Of.GetCreationTimestamp().Time)
			if d.IsDeleted() {
				s.Deleted = stamp(d.Of.GetDeletionTimestamp().Time)
			}
		}
		all = append(all, s)
	}
	return all
}

// groupsOfOSDs are the DriveGroups of OSDs that have one, by the names of their Daemons.
func (c *Call) groupsOfOSDs() map[string]string {
	groups := map[[2]string]string{}
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		for _, d := range g.Status.Devices {
			groups[[2]string{d.Host, d.ID}] = spec.GroupID(g)
		}
	}
	of := map[string]string{}
	if len(groups) == 0 {
		return of
	}
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
