package ceph

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// node is a StorageNode on its way into the plan.
type node struct {
	engine.ResolvedNode
	problems []string        // what this driver found, beside ResolvedNode.Problems
	waits    []string        // that its agent is not heard
	group    *drives.Outcome // what the node is part of, where that is no StorageNode but a DriveGroup
	toCome   int             // its devices that become OSDs as soon as something that is waited for is there
}

// usable says whether new daemons may be put on the node's host.
func (n *node) usable() bool {
	return n.Host != nil && n.Address != "" && len(n.Problems)+len(n.problems)+len(n.Waits)+len(n.waits) == 0
}

// waiting says whether nothing is wrong with the node, and something is not there yet.
func (n *node) waiting() bool {
	return len(n.Problems)+len(n.problems) == 0 && len(n.Waits)+len(n.waits) > 0
}

// hostName is the host that the node means, or meant while it was there.
func (n *node) hostName() string {
	if n.Host != nil {
		return n.Host.Name
	}
	return n.Node.Status.Host
}

// object is what the node is called in decisions, and what in sentences.
func (n *node) object() string {
	if n.group != nil {
		return engine.ResourceObject(n.group.Group)
	}
	return engine.NodeObject(n.Node.Name)
}

func (n *node) what() string {
	if n.group != nil {
		return "DriveGroup " + n.group.Group.Name
	}
	return "StorageNode " + n.Node.Name
}

// resolve finds out what the StorageNodes mean, and tells what keeps them from being used. Problems of single devices are told
// where the OSDs are planned.
func (p *planner) resolve() {
	for _, r := range engine.ResolveNodes(p.view) {
		n := p.addNode(r)
		p.plan.TellNode(r, n.Node.Name, nil, nil)
		p.tellUnheard(n)
		tellEach(p, api.VerdictSkip, api.ReasonDeviceUnavailable, n.object(), r.Out.Unmatched)
	}
	p.resolveGroups()
	// Numbers are given in this order.
	slices.SortStableFunc(p.nodes, func(a, b *node) int { return strings.Compare(a.Node.Name, b.Node.Name) })
}

// tellUnheard tells of a node whose agent is not heard.
func (p *planner) tellUnheard(n *node) {
	tellEach(p, api.VerdictWait, api.ReasonAgentDisconnected, n.object(), n.waits)
}

// tellEach tells of an object for one reason.
func tellEach(p *planner, verdict api.Verdict, reason api.Reason, object string, texts []string) {
	for _, text := range texts {
		p.decide(verdict, reason, object, "%s", text)
	}
}

func (p *planner) addNode(r engine.ResolvedNode) *node {
	n := &node{ResolvedNode: r}
	n.Devices = slices.Clone(r.Devices) // verdicts are written into them
	if n.Host != nil && !n.Host.AgentHeard() {
		n.waits = append(n.waits, fmt.Sprintf("agent of host %s disconnected", n.Host.Name))
	}
	p.nodes = append(p.nodes, n)
	return n
}

// checkNetworks makes sure that each node that will have OSDs is in the network for replication. (That it is in the public
// one, ResolveNodes has seen to.)
func (p *planner) checkNetworks() {
	network := p.cluster.Spec.Network.Cluster
	if network == "" {
		return
	}
	for _, n := range p.nodes {
		if n.Host == nil || len(n.Devices) == 0 || len(n.Host.Status.Addresses) == 0 || addressIn(network, n.Host.Status.Addresses) != "" {
			continue
		}
		text := fmt.Sprintf("host %s has no address in the cluster network %s; its addresses: %s",
			n.Host.Name, network, strings.Join(n.Host.Status.Addresses, ", "))
		n.problems = append(n.problems, text)
		p.decide(api.VerdictRefuse, api.ReasonNodeUnusable, n.object(), "%s", text)
	}
}

// addressIn returns the first address in a network; with no network, the first one.
func addressIn(network string, addresses []string) string {
	if network == "" {
		if len(addresses) == 0 {
			return ""
		}
		return addresses[0]
	}
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

// place is a host where daemons may be put.
type place struct {
	host, address string
}

// places are the hosts where mons or mgrs may be put, sorted by name, and how many more there may come to be: those of the
// StorageNodes, or those that the spec selects.
func (p *planner) places(hosts selection.Selection, object string) (places []place, toCome int) {
	byHost := p.usableNodes()
	switch err := hosts.Err(); {
	case err != nil:
		p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, object, "%s is invalid: %v", hosts.Field, err)
		return nil, 0
	case hosts.Given():
		return p.selected(hosts.Selects, byHost)
	}
	for _, n := range p.nodes {
		if n.waiting() || n.usable() && p.closed(n.Host.Name) {
			toCome++
		}
	}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		places = append(places, place{host, byHost[host].Address})
	}
	return places, toCome
}

// usableNodes are the nodes on whose hosts new daemons may be put, by their hosts.
func (p *planner) usableNodes() map[string]*node {
	byHost := map[string]*node{}
	for _, n := range p.nodes {
		if n.usable() && !p.closed(n.Host.Name) && byHost[n.Host.Name] == nil {
			byHost[n.Host.Name] = n
		}
	}
	return byHost
}

// selected are the hosts that a selector selects, whether the cluster has nodes there or not.
func (p *planner) selected(match func(*api.Host) bool, byHost map[string]*node) (places []place, toCome int) {
	addresses := engine.NewAddresses(p.view)
	for _, name := range slices.Sorted(maps.Keys(p.hosts)) {
		h := p.hosts[name]
		if !match(h) || p.closed(name) {
			continue
		}
		address := addressIn(p.cluster.Spec.Network.Public, addresses.Of(h))
		if n := byHost[name]; n != nil {
			address = n.Address
		}
		switch {
		case len(h.Status.Addresses) == 0 || !h.AgentHeard():
			toCome++
		case address != "":
			places = append(places, place{name, address})
		}
	}
	return places, toCome
}
