package engine

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
)

// ResolveNodes says what the cluster's StorageNodes mean on the hosts that are there now, in the order of View.Nodes. It is
// pure. Drivers call it first in Plan, so that all storage systems understand a StorageNode in the same way.
func ResolveNodes(v *View) []ResolvedNode {
	claims, hosts, addresses := newClaimIndex(v.Claims), newHostIndex(v.Hosts), NewAddresses(v)
	resolved := make([]ResolvedNode, len(v.Nodes))
	for i := range v.Nodes {
		resolved[i] = resolveNode(v, &v.Nodes[i], hosts, claims, addresses)
	}
	awaitHosts(resolved, v.Hosts)
	return resolved
}

func resolveNode(v *View, node *api.StorageNode, hosts *hostIndex, claims claimIndex, addresses *Addresses) ResolvedNode {
	r := ResolvedNode{Node: node}
	r.resolveHost(hosts)
	if r.Host == nil {
		r.Out = exclusions.Of(node, nil)
		r.Devices = recordedDevices(node, r.Out)
		return r
	}
	r.resolveAddress(v.Cluster.Spec.Network.Public, addresses)
	r.resolveDevices(claims, key(v.Cluster.Namespace, v.Cluster.Name))
	return r
}

// resolveHost finds the one host that the node's selector selects. That it selects none is for awaitHosts to tell.
func (r *ResolvedNode) resolveHost(hosts *hostIndex) {
	selected := hosts.selected(r.Node.Spec.NodeSelector)
	switch len(selected) {
	case 0:
		return
	case 1:
		r.Host = selected[0]
	default:
		names := make([]string, len(selected))
		for i, h := range selected {
			names[i] = h.Name
		}
		r.Problems = append(r.Problems, fmt.Sprintf("%d hosts match the labels %s (%s): a StorageNode selects one host; "+
			"select by %s", len(selected), labelText(r.Node.Spec.NodeSelector), strings.Join(names, ", "), api.LabelHostname))
		return
	}
	r.keepHost(hosts)
}

// keepHost holds a node to the host where its devices were accepted. Identities such as "file-/disk" may exist on several
// hosts, and labels are moved by mistake: a node that silently followed them could reach for another machine's data.
func (r *ResolvedNode) keepHost(hosts *hostIndex) {
	was := r.Node.Status.Host
	if was == "" || was == r.Host.Name || len(r.Node.Status.Devices) == 0 {
		return
	}
	r.Problems = append(r.Problems, fmt.Sprintf("the StorageNode was accepted on host %s, but its nodeSelector now "+
		"selects %s: restore the labels of host %s; or delete the StorageNode, which drains that host, and create another",
		was, r.Host.Name, was))
	r.Host = hosts.named[was]
}

// hostIndex finds hosts. Almost every selector names a host by its label, and a thousand nodes on a thousand hosts would
// cost a million comparisons in each run.
type hostIndex struct {
	all      []*api.Host
	named    map[string]*api.Host
	labelled map[string][]*api.Host
}

func newHostIndex(hosts []api.Host) *hostIndex {
	x := &hostIndex{
		all: make([]*api.Host, 0, len(hosts)), named: make(map[string]*api.Host, len(hosts)), labelled: make(map[string][]*api.Host, len(hosts)),
	}
	for i := range hosts {
		h := &hosts[i]
		x.all = append(x.all, h)
		x.named[h.Name] = h
		if label, ok := h.Labels[api.LabelHostname]; ok {
			x.labelled[label] = append(x.labelled[label], h)
		}
	}
	return x
}

func (x *hostIndex) selected(selector map[string]string) []*api.Host {
	candidates := x.all
	if label, ok := selector[api.LabelHostname]; ok {
		candidates = x.labelled[label]
	}
	var selected []*api.Host
	for _, h := range candidates {
		if hasLabels(h.Labels, selector) {
			selected = append(selected, h)
		}
	}
	return selected
}

// hasLabels is false for an empty selector: it would mean every host, which nobody intends.
func hasLabels(labels, selector map[string]string) bool {
	for k, want := range selector {
		if have, ok := labels[k]; !ok || have != want {
			return false
		}
	}
	return len(selector) > 0
}

func labelText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

// resolveAddress chooses the node's address for storage traffic, as ResolvedNode.Address documents it.
func (r *ResolvedNode) resolveAddress(public string, addresses *Addresses) {
	seen := r.Host.Status.Addresses
	if len(seen) == 0 {
		r.Waits = append(r.Waits, fmt.Sprintf("host %s has not reported its addresses yet", r.Host.Name))
		return
	}
	candidates := addresses.Of(r.Host)
	if ips := r.Node.Spec.StorageNetwork.IPs; len(ips) > 0 {
		candidates = r.ownAddresses(ips, seen)
	} else if len(candidates) == 0 {
		r.Problems = append(r.Problems, addresses.Why(r.Host))
	}
	if len(candidates) == 0 {
		return
	}
	if public == "" {
		r.Address = candidates[0]
		return
	}
	if r.Address = firstIn(public, candidates); r.Address == "" {
		r.Problems = append(r.Problems, fmt.Sprintf("host %s has no address in the cluster's public network %s; its "+
			"addresses: %s", r.Host.Name, public, strings.Join(candidates, ", ")))
	}
}

// ownAddresses returns those of ips that the host has, and notes a problem for each other one.
func (r *ResolvedNode) ownAddresses(ips, seen []string) []string {
	var own []string
	for _, ip := range ips {
		if slices.ContainsFunc(seen, func(s string) bool { return sameAddress(ip, s) }) {
			own = append(own, ip)
			continue
		}
		r.Problems = append(r.Problems, fmt.Sprintf("storageNetwork.ips has %s, which is not an address of host %s; its "+
			"addresses: %s", ip, r.Host.Name, strings.Join(seen, ", ")))
	}
	return own
}

func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Unmap() == y.Unmap()
}

func firstIn(network string, addresses []string) string {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return ""
	}
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil && prefix.Contains(ip.Unmap()) {
			return a
		}
	}
	return ""
}

func compareKeys(a, b types.NamespacedName) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
