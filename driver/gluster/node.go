package gluster

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// node is a StorageNode on its way into the plan, or one that is not declared any more and has a Daemon still.
type node struct {
	engine.ResolvedNode // its Node is nil when it is not declared any more
	name                string
	address             string // by which the pool knows it, or will
	zone                int32
	daemon              *api.Daemon
	report              *glusterd.Report
	stores              []*store
	problems            []string // what this driver found, beside ResolvedNode.Problems
	waits               []string
	leaving             string // why it is to give up all its bricks and go; empty when it stays
	gone                bool   // its Daemon is to be removed
}

func (n *node) object() string { return "node/" + n.name }

// usable says whether a glusterd may be put on the node's host.
func (n *node) usable() bool {
	return n.Host != nil && n.address != "" && n.leaving == "" && len(n.Problems)+len(n.problems)+len(n.Waits)+len(n.waits) == 0
}

// hostName is the host that the node means, or meant while it was there.
func (n *node) hostName() string {
	switch {
	case n.daemon != nil:
		return n.daemon.Spec.Host
	case n.Host != nil:
		return n.Host.Name
	}
	return ""
}

// running says whether the node's agent says now that its glusterd runs, and its report can be believed.
func (n *node) running() bool {
	return n.daemon != nil && n.daemon.DeletionTimestamp == nil && n.daemon.Spec.State == api.WantRunning &&
		n.daemon.Status.State == api.DaemonRunning && n.report != nil && (n.Host == nil || n.Host.AgentHeard())
}

// resolve finds out what the StorageNodes mean, and which nodes are to leave.
func (p *planner) resolve() {
	for _, r := range engine.ResolveNodes(p.view) {
		n := &node{ResolvedNode: r, name: r.Node.Name, address: r.Address, zone: 1}
		n.Devices = slices.Clone(r.Devices) // verdicts are written into them
		if g := r.Node.Spec.GlusterFS; g != nil && g.Zone > 0 {
			n.zone = g.Zone
		}
		p.join(n)
		p.check(n)
		p.nodes = append(p.nodes, n)
	}
	p.addLeavers()
	slices.SortFunc(p.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	p.checkAddresses()
	for _, n := range p.nodes {
		p.plan.TellNode(n.ResolvedNode, n.name, n.problems, n.waits)
	}
}

// join adds what there is of a node already. Host and address of a glusterd are fixed from its first day: the pool knows it by
// them.
func (p *planner) join(n *node) {
	n.daemon = p.have[daemonName(p.cluster.Name, n.name)]
	if n.daemon == nil {
		return
	}
	n.report = p.seen.Reports[n.daemon.Name]
	was := n.daemon.Spec
	if n.Host != nil && n.Host.Name != was.Host {
		n.problem("the node was set up on host %s and its labels now select %s: give the labels back to %s, or delete the node and make another one",
			was.Host, n.Host.Name, was.Host)
	}
	n.Host = p.hosts[was.Host]
	if fixed := was.Parameters[glusterd.ParamAddress]; fixed != n.address {
		if n.address != "" && !n.otherHost(was.Host) {
			n.problem("its address would change from %s to %s, and the pool and all clients know it by %s: "+
				"name %s in storageNetwork.ips again, or delete the node, which moves its bricks away, and make another one",
				fixed, n.address, fixed, fixed)
		}
		n.address = fixed
	}
}

func (n *node) otherHost(host string) bool { return n.Host != nil && n.Host.Name != host }

func (n *node) problem(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf(format, args...))
}

// addLeavers adds the nodes that have a Daemon and are not declared any more.
func (p *planner) addLeavers() {
	declared := map[string]bool{}
	for _, n := range p.nodes {
		declared[daemonName(p.cluster.Name, n.name)] = true
	}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.Spec.Type != glusterd.Type || declared[d.Name] {
			continue
		}
		p.nodes = append(p.nodes, &node{
			ResolvedNode: engine.ResolvedNode{Host: p.hosts[d.Spec.Host]}, name: d.Spec.ID, zone: 1,
			address: d.Spec.Parameters[glusterd.ParamAddress], daemon: d, report: p.seen.Reports[d.Name], leaving: "its StorageNode was deleted",
		})
	}
}
