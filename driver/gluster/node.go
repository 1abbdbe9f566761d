package gluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

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

// store is a place for bricks on a node.
type store struct {
	glusterd.Store
	node     *node
	leaving  string // why its bricks are to go
	promised int64  // to bricks, in bytes
	bricks   int
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
		n.daemon.Status.State == api.DaemonRunning && n.report != nil && (n.Host == nil || connected(n.Host))
}

// connected says whether the host's agent is heard. Before anybody has judged it, it counts as connected.
func connected(h *api.Host) bool {
	return !meta.IsStatusConditionFalse(h.Status.Conditions, api.HostAgentConnected)
}

// mode is a host's mode. One whose Host is gone is not in any: nothing of it can be looked after.
func (p *planner) mode(host string) api.HostMode {
	if h := p.hosts[host]; h != nil {
		return h.ModeOf()
	}
	return api.HostActive
}

func hostObject(host string) string { return "host/" + host }

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
		for _, text := range slices.Concat(n.Problems, n.problems) {
			p.decide(api.VerdictRefuse, n.object(), "%s", text)
		}
		for _, text := range slices.Concat(n.Waits, n.waits) {
			p.decide(api.VerdictWait, n.object(), "%s", text)
		}
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

// check looks at what a declared node asks for.
func (p *planner) check(n *node) {
	if n.Host != nil && !connected(n.Host) {
		n.waits = append(n.waits, fmt.Sprintf("the agent of host %s is not heard", n.Host.Name))
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
	case p.mode(host) == api.HostDrain:
		n.leaving = fmt.Sprintf("host %s is being drained", host)
	case p.mode(host) == api.HostMaintenance && n.daemon == nil:
		n.waits = append(n.waits, fmt.Sprintf("host %s is in maintenance", host))
	}
}

// checkDevices refuses devices that hold something. Those that the node's glusterd was given already are its own; what is on them
// the agent looks at, and it makes no file system where there is another one.
func (p *planner) checkDevices(n *node) {
	for i := range n.Devices {
		r := &n.Devices[i]
		if r.Problem == "" && r.Device != nil && !n.uses(r.ID) && r.Device.Availability != api.DeviceAvailable {
			why := cmp.Or(strings.Join(r.Device.Reasons, "; "), "it is not empty")
			r.Problem = fmt.Sprintf("device %s on host %s cannot be used: %s. Free and wipe it, or remove it from StorageNode %s",
				r.ID, n.hostName(), strings.TrimSuffix(why, "."), n.name)
		}
		if r.Problem != "" {
			p.decide(api.VerdictRefuse, n.object(), "%s", r.Problem)
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

// findStores takes the stores from the reports, and says which of them are to be emptied.
func (p *planner) findStores() {
	for _, n := range p.nodes {
		if n.report == nil {
			continue
		}
		for _, s := range n.report.Stores {
			n.stores = append(n.stores, &store{Store: s, node: n, leaving: n.whyLeaving(&s)})
		}
	}
}

// whyLeaving says why a store is to be emptied; nothing when it stays.
func (n *node) whyLeaving(s *glusterd.Store) string {
	switch {
	case n.leaving != "":
		return n.leaving
	case s.Device != "" && !slices.ContainsFunc(n.Devices, func(r engine.ResolvedDevice) bool { return r.ID == s.Device }):
		return fmt.Sprintf("device %s was taken from StorageNode %s", s.Device, n.name)
	case s.Device == "" && !slices.Contains(n.Node.Spec.Directories, s.Name):
		return fmt.Sprintf("directory %s was taken from StorageNode %s", s.Name, n.name)
	}
	return ""
}

// wantedDevices are the declared ones, and those that were and still have bricks.
func (p *planner) wantedDevices(n *node) []api.DaemonDevice {
	ids := map[string]bool{}
	for _, r := range n.Devices {
		if r.ID != "" && (n.uses(r.ID) || r.Problem == "" && r.Device != nil) {
			ids[r.ID] = true
		}
	}
	if n.daemon != nil {
		for _, d := range n.daemon.Spec.Devices {
			ids[d.ID] = ids[d.ID] || p.keepsStore(n, glusterd.StoreName(d.ID))
		}
	}
	var devices []api.DaemonDevice
	for _, id := range sortedKeys(ids) {
		if ids[id] {
			devices = append(devices, api.DaemonDevice{Name: glusterd.StoreName(id), ID: id})
		}
	}
	return devices
}

// wantedDirectories are the declared ones, and those that were and still have bricks.
func (p *planner) wantedDirectories(n *node) []string {
	var dirs []string
	if n.Node != nil {
		dirs = slices.Clone(n.Node.Spec.Directories)
	}
	if n.daemon != nil {
		for _, dir := range directories(n.daemon) {
			if !slices.Contains(dirs, dir) && p.keepsStore(n, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// keepsStore says whether a store that is not declared any more has to stay: a volume has a brick in it, or nobody can say.
func (p *planner) keepsStore(n *node, name string) bool {
	if p.speaker == nil || n.report == nil || n.leaving != "" {
		return true
	}
	i := slices.IndexFunc(n.stores, func(s *store) bool { return s.Name == name })
	return i >= 0 && (n.stores[i].bricks > 0 || n.stores[i].Problem == "" && p.leftover(n, n.stores[i]))
}

// writeNodes writes the statuses of StorageNodes that change.
func (p *planner) writeNodes() {
	for _, n := range p.nodes {
		if n.Node == nil {
			continue
		}
		status := engine.NodeStatusFor(n.ResolvedNode, n.problems, p.now)
		if !equality.Semantic.DeepEqual(status, n.Node.Status) {
			p.plan.Nodes = append(p.plan.Nodes, engine.NodeStatus{Name: n.Node.Name, Status: status})
		}
	}
}
