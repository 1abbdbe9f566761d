package answer

import (
	"cmp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Host is a HostSpec.
type Host struct {
	Name   string   `json:"hostname"`
	Addr   string   `json:"addr"`
	Labels []string `json:"labels"`
	Status string   `json:"status"`
}

// used are the hosts that the cluster uses or may use.
func (c *Call) used() []*api.Host {
	used := c.View.UsedHosts()
	var hosts []*api.Host
	for i := range c.View.Hosts {
		if h := &c.View.Hosts[i]; used[h.Name] {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

func hosts(c *Call) (any, error) {
	rows, listens := []Host{}, c.addresses()
	for _, h := range c.used() {
		rows = append(rows, Host{Name: h.Name, Addr: address(h, listens), Labels: labels(h), Status: hostStatus(h)})
	}
	return rows, nil
}

// addresses are where the cluster's daemons on each host listen.
func (c *Call) addresses() map[string]string {
	of := make(map[string]string, len(c.View.Hosts))
	for i := range c.View.Daemons {
		d := &c.View.Daemons[i]
		if of[d.Spec.Host] == "" {
			of[d.Spec.Host] = d.Spec.Parameters[paramAddress]
		}
	}
	return of
}

// address is that of a host: where daemons listen, else the first one that the host has.
func address(h *api.Host, listens map[string]string) string {
	return cmp.Or(slices.Concat([]string{listens[h.Name]}, h.Status.Addresses, []string{h.Name})...)
}

// labels are those of a host that belong to 'ceph orch'.
func labels(h *api.Host) []string {
	all := []string{}
	for label := range h.Labels {
		if name, is := strings.CutPrefix(label, wire.LabelPrefix); is {
			all = append(all, name)
		}
	}
	if h.ModeOf() == api.HostDrain {
		all = append(all, spec.LabelNoSchedule)
	}
	slices.Sort(all)
	return all
}

// hostStatus is in the words of cephadm, which 'ceph orch host ls --host-status' compares.
func hostStatus(h *api.Host) string {
	switch {
	case !h.AgentHeard():
		return "Offline"
	case h.ModeOf() == api.HostMaintenance:
		return "Maintenance"
	}
	return ""
}
