package torus

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/figures"
	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The words of StorageStatus.health. Torus has none of its own.
const (
	healthOK       = "ok"
	healthMoving   = "moving"
	healthNearFull = "nearfull"
	healthDegraded = "degraded"
	healthFull     = "full"
)

// writeStatus tells the cluster's state by Torus's own word, and whether anything is left to wait for.
func (p *planner) writeStatus() {
	offline := p.whyOffline()
	var set []string
	for _, n := range p.nodes {
		if x := p.peer(n); n.Node != nil && x != nil && x.State != torus.PeerAvail {
			set = append(set, n.name)
		}
	}
	s := engine.StatusOf(api.StorageTorus, len(offline) > 0, slices.Concat(offline, p.whyDegraded()), set)
	if p.word != nil {
		s.Health, s.Torus, s.Figures = p.health(), p.torusStatus(), p.figures()
		s.Capacity = figures.Capacity(s.Figures)
	}
	p.plan.Status = s
	p.plan.Settle(p.view)
}

// whyOffline says what keeps data from being served.
func (p *planner) whyOffline() []string {
	switch {
	case len(p.nodes) == 0:
		return []string{"no StorageNode is declared for the cluster: it waits for nodes"}
	case p.speaker == nil && !p.everUp() && p.ownEtcd() && !p.etcdServes():
		return []string{"the cluster's etcd does not run yet"}
	case p.speaker == nil:
		return []string{"no torusd of the cluster reports that it runs"}
	case p.word == nil:
		return []string{fmt.Sprintf("node %s has not reported on the cluster: see the message of its daemon", p.speaker.name)}
	}
	up, down := p.word.Count(torus.PeerOK), p.word.Count(torus.PeerDown)
	switch {
	case up < p.copies() && up < cmp.Or(p.word.Replication, p.copies()) || up == 0:
		return []string{fmt.Sprintf("only %d of the %s of each block are in the ring and up",
			up, words.Plural(p.copies(), "peer"))}
	case down >= p.word.Replication:
		return []string{fmt.Sprintf("%s of the ring are down, as many as hold each block: some blocks may be out of reach", words.Plural(down, "peer"))}
	}
	return nil
}

// whyDegraded says what of the cluster is not as it is wanted.
func (p *planner) whyDegraded() []string {
	reasons := p.badVolumes()
	because := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	for _, n := range p.nodes {
		p.judgeNode(n, because)
	}
	p.judgeStrangers(because)
	reasons = append(reasons, p.plan.Open()...)
	if change := p.plan.FirstChange(); len(reasons) == 0 && change != "" {
		because("%s", change)
	}
	return reasons
}

func (p *planner) judgeNode(n *node, because func(string, ...any)) {
	for _, d := range []*api.Daemon{n.etcd, n.torusd} {
		if d != nil && d.DeletionTimestamp == nil && (d.Status.State != api.DaemonRunning || d.Spec.State != api.WantRunning) {
			because("node %s: its %s is %s%s", n.name, d.Spec.Type, cmp.Or(d.Status.State, api.DaemonPending), words.Colon(d.Status.Message))
		}
	}
	if n.torusd == nil || n.torusd.DeletionTimestamp != nil || p.word == nil {
		return
	}
	switch x := p.peer(n); {
	case x == nil && n.leaving == "":
		because("node %s: torusd has not connected yet", n.name)
	case x != nil && x.State == torus.PeerDown:
		because("node %s is DOWN: torusd disconnected", n.name)
	case p.returned(n):
		because("%s", p.notWhole(n))
	}
	p.judgeRoom(n, because)
}

// judgeStrangers tells of members of the ring that are of no node: Holdfast removes none that it did not bring in.
func (p *planner) judgeStrangers(because func(string, ...any)) {
	if p.word == nil {
		return
	}
	for i := range p.word.Peers {
		x := &p.word.Peers[i]
		ours := slices.ContainsFunc(p.nodes, func(n *node) bool { return p.peer(n) == x })
		if !ours && x.State == torus.PeerDown {
			because("peer %s of the ring is down and belongs to no node: if it never comes back, remove it with 'torusctl peer remove --force %s'", x.UUID, x.UUID)
		}
	}
}

func (p *planner) health() string {
	fullest := p.fullest()
	switch {
	case fullest >= fullPercent:
		return healthFull
	case p.word.Count(torus.PeerDown) > 0 || p.word.Members() < p.copies():
		return healthDegraded
	case fullest >= nearFullPercent:
		return healthNearFull
	case p.moving() != "":
		return healthMoving
	}
	return healthOK
}

func (p *planner) torusStatus() *api.TorusStatus {
	return &api.TorusStatus{
		Version: p.speaker.torusd.Status.Version, Etcd: p.speaker.torusd.Spec.Parameters[torus.ParamEtcd],
		Replication: int32(p.word.Replication),
		Peers:       int32(len(p.word.Peers) - p.word.Count(torus.PeerDown)), Members: int32(p.word.Members()),
		MembersDown: int32(p.word.Count(torus.PeerDown)), Volumes: int32(len(p.word.Volumes)),
	}
}

// figures are what the ring's members that are up have and hold.
func (p *planner) figures() *api.StorageFigures {
	var total, used int64
	for _, x := range p.word.Peers {
		if x.State == torus.PeerOK {
			total, used = total+x.Size, used+x.Used
		}
	}
	return figures.Of(total, used)
}
