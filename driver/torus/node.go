package torus

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// node is a StorageNode on its way into the plan, or one that is not declared any more and has a torusd still.
type node struct {
	engine.ResolvedNode // its Node is nil when it is not declared any more
	name                string
	url                 string // http://ADDRESS:PORT, by which Torus knows the peer, or will
	torusd, etcd        *api.Daemon
	report              *torus.Report
	problems            []string // what this driver found, beside ResolvedNode.Problems
	waits               []string
	leaving             string // why it is to give up its blocks and go; empty when it stays
	gone                bool   // its daemons are to be removed
}

func (n *node) object() string { return "node/" + n.name }

// usable says whether daemons may be put on the node's host.
func (n *node) usable() bool {
	return n.Host != nil && n.url != "" && n.leaving == "" && len(n.Problems)+len(n.problems)+len(n.Waits)+len(n.waits) == 0
}

// host is the host that the node means, or meant while it was there.
func (n *node) host() string {
	switch {
	case n.torusd != nil:
		return n.torusd.Spec.Host
	case n.etcd != nil:
		return n.etcd.Spec.Host
	case n.Host != nil:
		return n.Host.Name
	}
	return ""
}

// running says whether the node's agent says now that its torusd runs, and its report can be believed.
func (n *node) running() bool { return n.report != nil && runs(n.torusd, n.Host) }

// runs says whether a daemon runs, by the word of an agent that is heard.
func runs(d *api.Daemon, h *api.Host) bool {
	return d != nil && d.DeletionTimestamp == nil && d.Spec.State == api.WantRunning && d.Status.State == api.DaemonRunning && (h == nil || h.AgentHeard())
}

func url(address string, port int) string {
	return "http://" + net.JoinHostPort(address, strconv.Itoa(port))
}

// resolve finds out what the StorageNodes mean, and which nodes are to leave.
func (p *planner) resolve() {
	for _, r := range engine.ResolveNodes(p.view) {
		n := &node{ResolvedNode: r, name: r.Node.Name}
		if r.Address != "" {
			n.url = url(r.Address, port(r.Node))
		}
		n.etcd = p.have[etcdName(p.cluster.Name, n.name)]
		if n.torusd = p.have[torusdName(p.cluster.Name, n.name)]; n.torusd != nil {
			p.join(n)
		}
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

func port(n *api.StorageNode) int {
	const byDefault = 40000
	if n.Spec.Torus == nil || n.Spec.Torus.Port == 0 {
		return byDefault
	}
	return int(n.Spec.Torus.Port)
}

// join adds what there is of a node already. Its host, address and store are fixed from its first day.
func (p *planner) join(n *node) {
	n.report = p.seen.Reports[n.torusd.Name]
	was := n.torusd.Spec
	other := n.Host != nil && n.Host.Name != was.Host
	if other {
		n.problem("the node was set up on host %s and its labels now select %s: give the labels back to %s, or delete the node and make another one",
			was.Host, n.Host.Name, was.Host)
	}
	n.Host = p.hosts[was.Host]
	if fixed := was.Parameters[torus.ParamPeer]; n.url != fixed {
		if n.url != "" && !other {
			n.problem("its address would change from %s to %s, and Torus and the daemons know it by %s: give it the old one again, "+
				"or delete the node, which moves its data away, and make another one", fixed, n.url, fixed)
		}
		n.url = fixed
	}
	if fixed := was.Parameters[torus.ParamStore]; store(p.cluster.Name, n) != fixed {
		n.problem("its store is in %s and would move to %s: name the old directory in spec.directories again, or delete "+
			"the node, which moves its data away, and create another", fixed, store(p.cluster.Name, n))
	}
}

// store is the directory of a declared node's blocks.
func store(cluster string, n *node) string {
	if dirs := n.Node.Spec.Directories; len(dirs) > 0 {
		return dirs[0] + "/" + torusdName(cluster, n.name)
	}
	return "${DATA}/store"
}

func (n *node) problem(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf(format, args...))
}

// check looks at what a declared node asks for.
func (p *planner) check(n *node) {
	if n.Host != nil && !n.Host.AgentHeard() {
		n.waits = append(n.waits, fmt.Sprintf("agent of host %s disconnected", n.Host.Name))
	}
	const maxID = 63 // the API's bound on a Daemon's id
	if len(n.name) > maxID {
		n.problem("its name is longer than %d characters, which the id of its torusd may have", maxID)
	}
	switch p.hosts[n.host()].ModeOf() {
	case api.HostDrain:
		n.leaving = fmt.Sprintf("host %s is being drained", n.host())
	case api.HostActive:
	case api.HostMaintenance:
		if n.torusd == nil {
			n.waits = append(n.waits, fmt.Sprintf("host %s is in maintenance", n.host()))
		}
	}
}

// addLeavers adds the nodes that have daemons and are not declared any more.
func (p *planner) addLeavers() {
	known := map[string]bool{}
	for _, n := range p.nodes {
		known[n.name] = true
	}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if known[d.Spec.ID] {
			continue
		}
		known[d.Spec.ID] = true
		n := &node{
			ResolvedNode: engine.ResolvedNode{Host: p.hosts[d.Spec.Host]}, name: d.Spec.ID, leaving: "its StorageNode was deleted",
			torusd: p.have[torusdName(p.cluster.Name, d.Spec.ID)], etcd: p.have[etcdName(p.cluster.Name, d.Spec.ID)],
		}
		n.url = d.Spec.Parameters[torus.ParamClient]
		if n.torusd != nil {
			n.url, n.report = n.torusd.Spec.Parameters[torus.ParamPeer], p.seen.Reports[n.torusd.Name]
		}
		p.nodes = append(p.nodes, n)
	}
}

// checkAddresses makes sure that no two daemons want one address: those of other clusters, and two nodes of this one.
func (p *planner) checkAddresses() {
	taken := map[string]string{}
	for _, d := range p.view.Others {
		for _, param := range []string{torus.ParamPeer, torus.ParamClient} {
			if at := d.Spec.Parameters[param]; at != "" && (d.Spec.Type == torus.TypeTorusd || d.Spec.Type == torus.TypeEtcd) {
				taken[d.Spec.Host+" "+at] = fmt.Sprintf("cluster %s/%s", d.Namespace, d.Spec.Cluster)
			}
		}
	}
	for _, withDaemon := range []bool{true, false} { // who has it keeps it
		for _, n := range p.nodes {
			if (n.torusd != nil) != withDaemon || n.url == "" {
				continue
			}
			wanted := []string{n.url}
			if len(p.spec.Endpoints) != 1 {
				wanted = append(wanted, url(hostOf(n.url), torus.EtcdClientPort))
			}
			for _, at := range wanted {
				if owner := taken[n.host()+" "+at]; owner != "" && n.torusd == nil {
					n.problem("%s on host %s is used by %s already: a node belongs to one cluster, so give this one another address of the host "+
						"(storageNetwork.ips) or another port, or delete it", at, n.host(), owner)
				}
				taken[n.host()+" "+at] = "node " + n.name
			}
		}
	}
}

// hostOf is the address in a URL.
func hostOf(url string) string {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		return ""
	}
	return host
}

// writeTorusd turns the nodes into changes of their torusd. The first metadata is written for the founder alone; the others come when
// the founder tells that it is there.
func (p *planner) writeTorusd() {
	founder := !p.begun()
	for _, n := range p.nodes {
		switch {
		case n.gone || n.torusd != nil && n.torusd.DeletionTimestamp != nil:
		case n.torusd != nil:
			p.want(p.torusd(n))
		case !n.usable() || !p.etcdServes():
		case founder && p.complete():
			d := p.torusd(n)
			d.Spec.Parameters[torus.ParamInit] = "default"
			if size := p.spec.BlockSize; size != nil {
				d.Spec.Parameters[torus.ParamInit] = strconv.FormatInt(size.Value(), 10)
			}
			p.want(d)
			founder = false
		case p.word != nil:
			p.want(p.torusd(n))
		}
	}
}

// torusd is the Daemon of a node.
func (p *planner) torusd(n *node) api.Daemon {
	d := p.daemon(torusdName(p.cluster.Name, n.name), torus.TypeTorusd, n)
	if n.torusd != nil {
		d.Spec = *n.torusd.Spec.DeepCopy() // its addresses, store and size are fixed
	} else {
		etcd, dir := p.etcdFor(n), store(p.cluster.Name, n)
		d.Spec.Command = []string{
			"${DATA}/bin/torusd", "--etcd", etcd, "--peer-address", n.url, "--data-dir", dir, "--size", sizeWords(n.Node.Spec.Torus.Size),
		}
		d.Spec.Parameters = map[string]string{torus.ParamEtcd: etcd, torus.ParamPeer: n.url, torus.ParamStore: dir}
		d.Spec.StopOrder = 10
		if p.newcomer(n) {
			d.Spec.Parameters[api.ParameterNewcomer] = "true"
		}
	}
	d.Spec.State = p.wanted(n)
	if !p.ownEtcd() {
		d.Spec.Parameters[torus.ParamGiven] = strings.Join(p.endpoints(), ",")
	}
	d.Spec.Parameters[torus.ParamReport] = torus.DepthPeer
	if n == p.reporter() {
		d.Spec.Parameters[torus.ParamReport] = torus.DepthCluster
	}
	return d
}

// newcomer says whether Torus knows nothing of a node. While a member of the ring is DOWN, of which it tells no address, the node may be
// that one, and its store is what the ring misses.
func (p *planner) newcomer(n *node) bool {
	return p.word != nil && p.peer(n) == nil && p.word.Count(torus.PeerDown) == 0
}

// sizeWords is a size as torusd takes it.
func sizeWords(size string) string {
	if strings.HasSuffix(size, "i") {
		return size + "B"
	}
	return size
}

// daemon is what all daemons have.
func (p *planner) daemon(name, kind string, n *node) api.Daemon {
	return api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace, Name: name,
			Labels: map[string]string{api.LabelCluster: p.cluster.Name}, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: p.cluster.Name, Type: kind, ID: n.name, Host: n.host(), State: api.WantRunning,
			// Only the deletion of the whole cluster may set another policy.
			OnRemoval: api.DeletionRetain, StopTimeout: metav1.Duration{Duration: 10 * time.Second},
		},
	}
}

func (p *planner) wanted(n *node) api.WantedState {
	if p.stopped[n.name] {
		return api.WantStopped
	}
	return api.WantRunning
}
