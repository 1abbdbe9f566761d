package v1alpha1

import (
	"path"
	"slices"
)

// HostSelection selects hosts: those that all that is given here selects.
type HostSelection struct {
	// Hosts are names of hosts. Who applies another list replaces it as a whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts,omitempty"`
	// Labels are labels that the hosts have.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// Pattern is a pattern of hosts' names, such as "store-*": * stands for any characters, ? for one, [abc] for one of these.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Pattern string `json:"pattern,omitempty"`
}

// Placement says how many daemons of a service there are, and on which hosts. Each has a host of its own.
type Placement struct {
	// HostSelection selects the hosts that may run them. Without it: the hosts of the cluster's StorageNodes and DriveGroups.
	HostSelection `json:",inline"`
	// Count is how many daemons there are; no more than the hosts that may run them are started.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count *int32 `json:"count,omitempty"`
}

// IsEmpty says whether nothing is given.
func (s *HostSelection) IsEmpty() bool { return len(s.Hosts)+len(s.Labels)+len(s.Pattern) == 0 }

// Selects says whether a host is selected. Where nothing is given none is.
func (s *HostSelection) Selects(h *Host) bool {
	if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, h.Name) {
		return false
	}
	if s.Pattern != "" {
		if ok, err := path.Match(s.Pattern, h.Name); !ok || err != nil {
			return false
		}
	}
	for k, want := range s.Labels {
		if have, ok := h.Labels[k]; !ok || have != want {
			return false
		}
	}
	return !s.IsEmpty()
}

// Placed is a Resource that chooses hosts.
//
// +kubebuilder:object:generate=false
type Placed interface {
	Resource
	// SelectedHosts selects the hosts that it may use; with nothing in it those of the cluster's nodes.
	SelectedHosts() *HostSelection
}

// Selects says whether the cluster's own spec selects a host for daemons.
func (c *StorageCluster) Selects(h *Host) bool {
	if c.Spec.Ceph == nil {
		return false
	}
	mon, mgr := c.Spec.Ceph.Mon.Placement, c.Spec.Ceph.Mgr.Placement
	return mon != nil && mon.Selects(h) || mgr != nil && mgr.Selects(h)
}
