// Package leaving finds out which OSDs of a cluster do not stay: those of hosts that are drained or
// gone, those whose device no StorageNode or DriveGroup names any more, and among these the ones whose
// number Ceph keeps for another disk. It is pure.
package leaving

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
)

// Set tells which OSDs do not stay.
type Set struct {
	hosts map[string]*api.Host
	named map[drives.Place]bool
	// declared are those of them that StorageNodes name.
	declared map[drives.Place]bool
	// vague names, by its host, a node of which it is not plain what each entry means; by no host,
	// one that may mean any.
	vague map[string]string
	// nobodys are the hosts with devices of nodes that could be of several clusters.
	nobodys map[string]bool
	// nodes are the StorageNodes with entries in spec.replace, by their hosts, and groups such DriveGroups.
	nodes  map[string][]replacer
	groups []*api.DriveGroup
}

// replacer is a StorageNode with entries in spec.replace.
type replacer struct {
	node *api.StorageNode
	out  exclusions.Set
}

// Of goes by the claims, which a node has to what its spec names. While nobody can tell whose a node
// is, or what it means by another entry, which may be the same device by a new name, the OSD stays.
func Of(view *engine.View) Set {
	x := Set{
		hosts: view.HostsByName(), named: map[drives.Place]bool{}, vague: map[string]string{}, nobodys: map[string]bool{},
		nodes: map[string][]replacer{},
	}
	fresh := x.claimed(view)
	x.declared = maps.Clone(x.named)
	for _, g := range engine.OfKind[*api.DriveGroup](view.Resources) {
		for _, d := range g.Status.Devices {
			if at := (drives.Place{Host: d.Host, ID: d.ID}); drives.Holds(g, at) {
				x.named[at] = true
			}
		}
		if len(g.Spec.Replace) > 0 {
			x.groups = append(x.groups, g)
		}
	}
	for i := range view.Nodes {
		n := &view.Nodes[i]
		host := OnlyHost(n, x.hosts)
		out := exclusions.Of(n, x.hosts[host])
		if unrecorded(n, out) > fresh[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] {
			x.vague[host] = n.Name
		}
		if len(n.Spec.Replace) > 0 {
			x.nodes[host] = append(x.nodes[host], replacer{n, out})
		}
	}
	return x
}

// claimed notes what nodes claim, and counts the claims of each that its status has not yet.
func (x *Set) claimed(view *engine.View) (fresh map[types.NamespacedName]int) {
	fresh = map[types.NamespacedName]int{}
	ours := types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}
	for i := range view.Claims {
		c := &view.Claims[i]
		if c.Node.Name == "" || c.Node.Namespace != view.Cluster.Namespace {
			continue
		}
		if !c.Recorded {
			fresh[c.Node]++
		}
		if c.Cluster.Name == "" {
			x.nobodys[c.Host] = true
		}
		if c.Cluster.Name == "" || c.Cluster == ours && !c.Dropped {
			x.named[drives.Place{Host: c.Host, ID: c.DeviceID}] = true
		}
	}
	return fresh
}

// OnlyHost is the one host that a node can mean, whether or not it is there: the one that it was
// accepted on, or that it names by its label, which in Kubernetes may differ from its name. Other
// labels are moved and given, so a node that asks for these alone, and whose host is not known, may
// mean any: then it is empty.
func OnlyHost(n *api.StorageNode, hosts map[string]*api.Host) string {
	label := n.Spec.NodeSelector[api.LabelHostname]
	if n.Status.Host != "" || label == "" {
		return n.Status.Host
	}
	for name, h := range hosts {
		if h.Hostname() == label {
			return name
		}
	}
	return label
}

// unrecorded counts the entries of which the node's status does not say what they mean.
func unrecorded(n *api.StorageNode, out exclusions.Set) (count int) {
	for _, name := range n.Spec.Devices {
		known := slices.ContainsFunc(n.Status.Devices, func(d api.ClaimedDevice) bool { return d.Name == name })
		if !known && !out.Leaves(name) {
			count++
		}
	}
	return count
}

// Host says whether a host is not to keep any OSDs: it is drained, or its Host is gone.
func (x Set) Host(name string) bool {
	h := x.hosts[name]
	return h == nil || h.ModeOf() == api.HostDrain
}

// Place says whether the OSD on a device of a host does not stay.
func (x Set) Place(at drives.Place) bool { return x.Host(at.Host) || x.Withdrawn(at) }

// Withdrawn says whether a device was taken from the cluster.
func (x Set) Withdrawn(at drives.Place) bool { return x.Unnamed(at) && x.HeldUpBy(at.Host) == "" }

// Unnamed says whether no node names a device as far as can be told.
func (x Set) Unnamed(at drives.Place) bool { return at.ID != "" && !x.named[at] }

// Declared says whether a StorageNode names a device.
func (x Set) Declared(at drives.Place) bool { return x.declared[at] }

// HeldUpBy is a node that may mean devices of a host; empty when there is none.
func (x Set) HeldUpBy(host string) string { return cmp.Or(x.vague[host], x.vague[""]) }

// Nobodys are the hosts with devices of nodes that could be of several clusters.
func (x Set) Nobodys() map[string]bool { return x.nobodys }
