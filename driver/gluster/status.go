package gluster

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/serves"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/figures"
	"github.com/holdfast-storage/holdfast/engine/serving"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Bounds of the API's schema.
const (
	maxText, maxBrickText = 1024, 256
	maxBackups            = 32
)

// enoughNodes is how many nodes a cluster needs in which nothing says otherwise, as many as the default has copies.
const enoughNodes = 3

// writeStatus tells the cluster's state by the pool's own word, and whether anything is left to wait for.
func (p *planner) writeStatus() {
	offline := p.whyOffline()
	var set []string
	for _, n := range p.members() {
		if n.Node != nil {
			set = append(set, n.name)
		}
	}
	s := engine.StatusOf(api.StorageGlusterFS, len(offline) > 0, slices.Concat(offline, p.whyDegraded()), set)
	if p.ready() {
		s.Health, s.GlusterFS, s.Figures = sets.Health(p.speaker.report), p.glusterStatus(), p.figures()
		s.Capacity = figures.Capacity(s.Figures)
		p.plan.Said = said(p)
	}
	p.plan.Status = s
	p.plan.Settle(p.view)
}

// said is what the pool says of the glusterds of its nodes.
func said(p *planner) serving.Said {
	all := serving.Said{}
	for _, n := range p.nodes {
		var bricks []glusterd.Brick
		if n.daemon == nil || n.leaving != "" || p.hosts[n.hostName()].ModeOf() != api.HostActive {
			continue
		}
		for _, v := range p.volumes {
			if v.declared != nil && v.pool != nil && v.pool.State == glusterd.VolumeStarted && !v.pool.Silent && !v.young() {
				bricks = append(bricks, p.bricksOf(v, n)...)
			}
		}
		all[n.daemon.Name] = serves.Of(n.daemon, p.peer(n), sets.NotOnline(bricks),
			serves.Unhealed(p.speaker.report.Pool.Volumes, n.address, n == p.speaker))
	}
	return all
}

// whyOffline says what keeps all data from being served.
func (p *planner) whyOffline() []string {
	declared := slices.ContainsFunc(p.nodes, func(n *node) bool { return n.Node != nil })
	switch {
	case !declared && len(p.nodes) == 0:
		return []string{"no StorageNode is declared for the cluster: it waits for nodes"}
	case p.speaker == nil:
		return []string{"no glusterd of the cluster reports that it runs"}
	case p.missed() != "":
		return []string{fmt.Sprintf("no node of the pool is connected (such as %s), and node %s does not belong to it", p.missed(), p.speaker.name)}
	case !p.ready() && p.view.Served():
		return nil // its bricks serve while another node begins to speak for the pool
	case !p.ready():
		return []string{p.silence()}
	}
	var reasons []string
	if have, need := p.serving(), p.nodesNeeded(); have < need {
		reasons = append(reasons, fmt.Sprintf("%d of the %s that are needed are in the pool and have devices or directories", have, words.Plural(need, "node")))
	}
	total, off := 0, []string(nil)
	for _, v := range p.volumes {
		if v.declared != nil && (v.pool != nil || v.lost != "") {
			total++
			if v.status.State == api.ResourceOffline {
				off = append(off, fmt.Sprintf("volume %s: %s", v.name, v.status.Message))
			}
		}
	}
	if total > 0 && len(off) == total {
		reasons = append(reasons, off...)
	}
	return reasons
}

func (p *planner) silence() string {
	return fmt.Sprintf("waiting for node %s to report on the pool", p.speaker.name)
}

// serving is how many nodes are in the pool and have a store that can be used.
func (p *planner) serving() (n int) {
	for _, x := range p.members() {
		if p.reached(x) && slices.ContainsFunc(x.stores, func(s *store) bool { return s.Problem == "" }) {
			n++
		}
	}
	return n
}

// nodesNeeded is how many nodes the declared volumes need that are not refused; where there is none, as many as a volume needs by default.
func (p *planner) nodesNeeded() int {
	need := 0
	for _, v := range p.volumes {
		if v.pool != nil {
			need = max(need, neededOf(layoutOfPool(v.pool)))
		} else if v.declared != nil && v.refusal == "" {
			need = max(need, layoutOf(&v.declared.Spec).setSize())
		}
	}
	return cmp.Or(need, enoughNodes)
}

// neededOf is how many nodes a volume that exists has to have up.
func neededOf(l layout) int {
	if l.disperse > 0 {
		return l.disperse - l.redundancy
	}
	return l.replica/2 + 1
}

// whyDegraded says what of the cluster is not as it is wanted.
func (p *planner) whyDegraded() []string {
	var reasons []string
	because := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if p.speaker != nil && !p.ready() {
		because("%s", p.silence())
	}
	for _, v := range p.volumes {
		if v.declared != nil && v.status.State != api.ResourceOnline && engine.Served(v.status.State) {
			because("volume %s is %s: %s", v.name, v.status.State, v.status.Message)
		}
	}
	for _, n := range p.nodes {
		p.judgeNode(n, because)
	}
	reasons = append(reasons, p.plan.Open()...)
	if change := p.plan.FirstChange(); len(reasons) == 0 && change != "" {
		because("%s", change)
	}
	return reasons
}

func (p *planner) judgeNode(n *node, because func(string, ...any)) {
	d := n.daemon
	if d == nil || d.DeletionTimestamp != nil {
		return
	}
	if d.Status.State != api.DaemonRunning || d.Spec.State != api.WantRunning {
		because("node %s: its glusterd is %s%s", n.name, cmp.Or(d.Status.State, api.DaemonPending), words.Colon(d.Status.Message))
		return
	}
	x := p.peer(n)
	switch {
	case !p.ready() || n == p.speaker:
	case x == nil && n.leaving == "":
		because("node %s is not in the pool yet", n.name)
	case serves.Rejected(x) != "":
		because("node %s %s", n.name, serves.Rejected(x))
	case x != nil && !x.Connected:
		because("node %s: its glusterd is disconnected from the pool", n.name)
	}
	for _, s := range n.stores {
		if s.Problem != "" {
			because("node %s: %s: %s", n.name, cmp.Or(s.Device, s.Name), s.Problem)
		}
	}
	if n.report != nil && n.report.Problem != "" {
		because("node %s: %s", n.name, n.report.Problem)
	}
}

func (p *planner) glusterStatus() *api.GlusterFSStatus {
	r := p.speaker.report
	s := &api.GlusterFSStatus{OpVersion: int32(r.OpVersion), Peers: int32(len(r.Peers) + 1), PeersConnected: 1}
	for _, n := range p.nodes {
		if n.report != nil && n.report.Version != "" && (s.Version == "" || sets.Older(n.report.Version, s.Version)) {
			s.Version = n.report.Version
		}
	}
	sets.Count(r, s)
	return s
}

// figures are what all stores have and hold.
func (p *planner) figures() *api.StorageFigures {
	var total, free int64
	for _, n := range p.nodes {
		for _, s := range n.stores {
			total, free = total+s.Size, free+s.Free
		}
	}
	return figures.Of(total, total-free)
}
