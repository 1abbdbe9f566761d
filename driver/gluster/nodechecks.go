package gluster

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// check looks at what a declared node asks for.
func (p *planner) check(n *node) {
	if n.Host != nil && !n.Host.AgentHeard() {
		n.waits = append(n.waits, fmt.Sprintf("agent of host %s disconnected", n.Host.Name))
	}
	const maxID = 63 // the API's bound on a Daemon's id
	if len(n.name) > maxID {
		n.problem("its name is longer than %d characters, which the id of its glusterd may have", maxID)
	}
	if n.daemon == nil && len(n.Node.Spec.Devices)+len(n.Node.Spec.Directories) == 0 {
		n.Waits = append(n.Waits, "it names neither devices nor directories for bricks")
	}
	p.checkDevices(n)
	for _, dir := range n.Node.Spec.Directories {
		if owner := p.directoryOwner(n, dir); owner != "" {
			n.problem("directory %s of host %s is used by %s: two that put bricks there would count the same space twice", dir, n.hostName(), owner)
		}
	}
	switch host := n.hostName(); {
	case p.hosts[host].ModeOf() == api.HostDrain:
		n.leaving = fmt.Sprintf("host %s is being drained", host)
	case p.hosts[host].ModeOf() == api.HostMaintenance && n.daemon == nil:
		n.waits = append(n.waits, fmt.Sprintf("host %s is in maintenance", host))
	}
}

// checkDevices refuses devices that hold something. Those that the node's glusterd was given already are its own; what is on them
// the agent looks at, and it makes no file system where there is another one.
func (p *planner) checkDevices(n *node) {
	for i := range n.Devices {
		r := &n.Devices[i]
		if r.Problem == "" && r.Device != nil && !n.uses(r.ID) && r.Device.Taken() != "" {
			r.Problem = fmt.Sprintf("device %s on host %s cannot be used: %s. If its data is not needed, free the device "+
				"(docs/how-to/devices.md), otherwise remove it from StorageNode %s",
				r.ID, n.hostName(), r.Device.Taken(), n.name)
		}
		if r.Problem != "" {
			p.decide(api.VerdictRefuse, api.ReasonDeviceUnavailable, n.object(), "%s", r.Problem)
		}
	}
}

// uses says whether the node's glusterd has a device, or had it and the record of that stands.
func (n *node) uses(device string) bool {
	if n.Node != nil && slices.ContainsFunc(n.Node.Status.Devices, func(d api.ClaimedDevice) bool { return d.ID == device }) {
		return true
	}
	return n.daemon != nil && slices.ContainsFunc(n.daemon.Spec.Devices, func(d api.DaemonDevice) bool { return d.ID == device })
}

// directoryOwner says which other glusterd has a directory of the node's host, or one above or below it.
func (p *planner) directoryOwner(n *node, dir string) string {
	overlaps := func(d *api.Daemon) bool {
		if d.Spec.Type != glusterd.Type || d.Spec.Host != n.hostName() || n.daemon != nil && d.Name == n.daemon.Name && d.Namespace == n.daemon.Namespace {
			return false
		}
		return slices.ContainsFunc(directories(d), func(other string) bool { return overlap(dir, other) })
	}
	for _, d := range p.allDaemons() {
		if overlaps(d) {
			return fmt.Sprintf("%s of cluster %s", d.Name, d.Spec.Cluster)
		}
	}
	return ""
}

func (p *planner) allDaemons() []*api.Daemon {
	all := slices.Clone(p.view.Others)
	for i := range p.view.Daemons {
		all = append(all, &p.view.Daemons[i])
	}
	return all
}

// directories are those that a glusterd was given.
func directories(d *api.Daemon) []string {
	return strings.FieldsFunc(d.Spec.Parameters[glusterd.ParamDirectories], func(r rune) bool { return r == '\n' })
}

// checkAddresses makes sure that no two glusterds want one address: those of other clusters, and two nodes of this one.
func (p *planner) checkAddresses() {
	taken := map[string]string{}
	for _, d := range p.view.Others {
		if d.Spec.Type == glusterd.Type {
			taken[d.Spec.Host+" "+d.Spec.Parameters[glusterd.ParamAddress]] = fmt.Sprintf("node %s of cluster %s/%s", d.Spec.ID, d.Namespace, d.Spec.Cluster)
		}
	}
	for _, withDaemon := range []bool{true, false} { // who has it keeps it
		for _, n := range p.nodes {
			if (n.daemon != nil) != withDaemon || n.address == "" {
				continue
			}
			key := n.hostName() + " " + n.address
			if owner := taken[key]; owner != "" && n.daemon == nil {
				n.problem("%s has a glusterd on host %s with the address %s already: a node belongs to one cluster, "+
					"so give this one another address of the host (storageNetwork.ips) or delete it", owner, n.hostName(), n.address)
				continue
			}
			taken[key] = "node " + n.name
			p.checkNewDirectories(n)
		}
	}
}

// checkNewDirectories makes sure that no two nodes that have no glusterd yet name one directory; of those that have one,
// directoryOwner knows.
func (p *planner) checkNewDirectories(n *node) {
	for _, o := range p.nodes {
		if o.name >= n.name || o.Node == nil || n.daemon != nil || o.daemon != nil || o.hostName() != n.hostName() {
			continue
		}
		for _, dir := range n.Node.Spec.Directories {
			if slices.ContainsFunc(o.Node.Spec.Directories, func(other string) bool { return overlap(dir, other) }) {
				n.problem("directory %s of host %s is used by node %s: two that put bricks there would count the same space twice", dir, n.hostName(), o.name)
			}
		}
	}
}

// overlap says whether one of two directories is the other, or lies in it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}
