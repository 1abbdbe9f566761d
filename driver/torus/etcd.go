package torus

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// ownEtcd says whether the cluster's metadata lies in an etcd of Holdfast's own.
func (p *planner) ownEtcd() bool { return len(p.spec.Endpoints) == 0 }

// chooseEtcd chooses the nodes that hold the members of the cluster's own etcd: three where three nodes are declared at the cluster's
// start, else one. They are chosen once, when that many nodes are ready, and start together.
func (p *planner) chooseEtcd() {
	if !p.ownEtcd() {
		return
	}
	if chosen := p.chosen(); chosen != "" {
		p.initial = chosen
		p.members = p.those(func(n *node) bool {
			return strings.Contains(","+chosen, ","+n.name+"=") && (holdsMember(n) || n.etcd == nil && !p.begun())
		})
		return
	}
	declared := p.those(func(n *node) bool { return n.Node != nil && n.leaving == "" })
	want := 1
	if len(declared) >= 3 {
		want = 3
	}
	ready := p.those((*node).usable)
	if len(ready) < want {
		if len(declared) > 0 {
			p.decide(api.VerdictWait, api.ReasonDependencyNotReady, "etcd", "%d of the %s that its members start on together are ready", len(ready), words.Plural(want, "node"))
		}
		return
	}
	p.members = ready[:want]
	var all []string
	for _, m := range p.members {
		all = append(all, m.name+"="+peerURL(m))
	}
	p.initial = strings.Join(all, ",")
}

// chosen is what the first member that was made has as its initial cluster; empty before one is. A leader may have died before it made the
// others, without whom there is never a majority.
func (p *planner) chosen() string {
	for _, n := range p.nodes {
		if !holdsMember(n) {
			continue
		}
		if i := slices.Index(n.etcd.Spec.Command, flagInitialCluster); i >= 0 && i+1 < len(n.etcd.Spec.Command) {
			return n.etcd.Spec.Command[i+1]
		}
	}
	return ""
}

func holdsMember(n *node) bool {
	return n.etcd != nil && n.etcd.Spec.Parameters[torus.ParamRole] == torus.RoleMember
}

// size is how many members the etcd was made for.
func (p *planner) size() int { return strings.Count(p.initial, "=http") }

// begun says whether Torus was made. Until then a member that is missing was never started. Later it may be one that was lost, and an
// etcd that comes back without its data is none of the members any more.
func (p *planner) begun() bool {
	return p.everUp() || slices.ContainsFunc(p.nodes, func(n *node) bool { return n.torusd != nil })
}

// complete says whether all members of the etcd are made.
func (p *planner) complete() bool {
	return !p.ownEtcd() || p.size() > 0 && len(p.those(func(n *node) bool { return p.isMember(n) && n.etcd != nil })) == p.size()
}

// flagInitialCluster is the word before all members of an etcd, as NAME=URL,NAME=URL.
const flagInitialCluster = "--initial-cluster"

func (p *planner) isMember(n *node) bool {
	for _, m := range p.members {
		if m == n {
			return true
		}
	}
	return false
}

func clientURL(n *node) string { return url(hostOf(n.url), torus.EtcdClientPort) }

func peerURL(n *node) string { return url(hostOf(n.url), torus.EtcdPeerPort) }

// endpoints are all the addresses at which the etcd serves.
func (p *planner) endpoints() []string {
	if !p.ownEtcd() {
		return p.spec.Endpoints
	}
	var all []string
	for _, m := range p.members {
		all = append(all, clientURL(m))
	}
	return all
}

// etcdFor is what a node's torusd is told as its etcd. Torus takes one address: where there are several, the node's own daemon of
// type etcd stands for all of them.
func (p *planner) etcdFor(n *node) string {
	if all := p.endpoints(); len(all) == 1 {
		return all[0]
	}
	return clientURL(n)
}

// etcdServes says whether a torusd can be started: by the word of the agents, more than half of the members run.
func (p *planner) etcdServes() bool {
	return !p.ownEtcd() || len(p.members) > 0 && 2*p.etcdRunning(nil) > p.size()
}

// etcdRunning counts the members that run, without one node, and without those that are told to stop.
func (p *planner) etcdRunning(without *node) (n int) {
	for _, m := range p.members {
		if m != without && !p.stopped[m.name] && runs(m.etcd, m.Host) {
			n++
		}
	}
	return n
}

// writeEtcd turns the choice into changes of Daemons.
func (p *planner) writeEtcd() {
	several := len(p.endpoints()) > 1
	for _, n := range p.nodes {
		switch {
		case n.gone || n.etcd != nil && n.etcd.DeletionTimestamp != nil:
		case n.etcd != nil:
			d := p.daemon(n.etcd.Name, torus.TypeEtcd, n)
			d.Spec = *n.etcd.Spec.DeepCopy() // its members are those of its first day
			d.Spec.State = p.wanted(n)
			p.want(d)
		case p.isMember(n) && !p.begun():
			p.want(p.member(n))
		case several && n.usable() && p.etcdServes():
			p.want(p.gateway(n))
		}
	}
}

// member is the Daemon of a member of the etcd. It listens on the storage network alone, where the blocks go as well, and speaks no
// TLS, as torusd does: who can reach one can reach the other.
func (p *planner) member(n *node) api.Daemon {
	d := p.daemon(etcdName(p.cluster.Name, n.name), torus.TypeEtcd, n)
	d.Spec.Command = []string{
		"${DATA}/bin/etcd", "--name", n.name, "--data-dir", "${DATA}/member",
		"--listen-client-urls", clientURL(n), "--advertise-client-urls", clientURL(n),
		"--listen-peer-urls", peerURL(n), "--initial-advertise-peer-urls", peerURL(n),
		flagInitialCluster, p.initial, "--initial-cluster-token", string(p.cluster.UID), "--initial-cluster-state", "new",
		// Each peer writes its state every few seconds: without compaction the history would fill the disk.
		"--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h",
	}
	d.Spec.Parameters = map[string]string{torus.ParamRole: torus.RoleMember, torus.ParamClient: clientURL(n)}
	d.Spec.StopOrder = 20
	return d
}

// gateway is the Daemon that passes a torusd on to whichever member answers.
func (p *planner) gateway(n *node) api.Daemon {
	var all []string
	for _, e := range p.endpoints() {
		all = append(all, strings.TrimPrefix(e, "http://"))
	}
	d := p.daemon(etcdName(p.cluster.Name, n.name), torus.TypeEtcd, n)
	d.Spec.Command = []string{
		"${DATA}/bin/etcd", "gateway", "start", "--endpoints", strings.Join(all, ","),
		"--listen-addr", strings.TrimPrefix(clientURL(n), "http://"),
	}
	d.Spec.Parameters = map[string]string{torus.ParamRole: torus.RoleGateway, torus.ParamClient: clientURL(n)}
	d.Spec.StopOrder = 20
	return d
}
