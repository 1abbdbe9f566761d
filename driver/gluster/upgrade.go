package gluster

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Packages are upgraded by the host's administrator. Processes run the old programs on until they are restarted: here, node after node,
// each when all sets that it has bricks of can do without it, and all copies are alike.

// optionGone is one that version 11 does not keep any more. From the second node on it has to go from what version 10 stored, before
// version 11 reads it: nodes whose texts of a volume differ reject each other (gluster/glusterfs#4016).
const optionGone, goneIn = "nfs.disable", 11

// outdated says whether a node runs programs that were replaced since they were started, by its agent's word of this time.
func (n *node) outdated() bool {
	return n.running() && n.report.Outdated && n.report.Generation == n.daemon.Generation
}

// restarting says whether a node was stopped to be started with what is installed now.
func (p *planner) restarting(n *node) bool {
	return n.daemon != nil && n.daemon.DeletionTimestamp == nil && p.hosts[n.hostName()].ModeOf() == api.HostActive && n.leaving == "" &&
		n.daemon.Spec.State == api.WantStopped && n.report != nil && n.report.Outdated
}

// checkUpgrades restarts nodes with what is installed, one after the other. The one that speaks for the pool comes when another one, which
// was restarted already, speaks for it.
func (p *planner) checkUpgrades() {
	turn := ""
	var due []*node
	for _, n := range p.nodes {
		switch {
		case p.restarting(n):
			turn = n.name
			p.followRestart(n)
		case n.outdated() && n.leaving == "" && p.hosts[n.hostName()].ModeOf() == api.HostActive:
			due = append(due, n)
		}
	}
	slices.SortStableFunc(due, func(a, b *node) int { return cmp.Compare(rankOf(a == p.speaker), rankOf(b == p.speaker)) })
	for _, n := range due {
		if p.mayRestartNode(n, turn) {
			turn = n.name
			p.stopped[n.name] = true
			p.again[n.name] = n.releases()
			p.decide(api.VerdictWait, api.ReasonRestarting, n.object(), "its glusterd and bricks are restarted: %s", n.releases())
		}
	}
}

func rankOf(last bool) int {
	if last {
		return 1
	}
	return 0
}

// followRestart keeps a node stopped until all of its processes have ended.
func (p *planner) followRestart(n *node) {
	d := n.daemon
	if d.Status.State != api.DaemonStopped || d.Status.ObservedGeneration != d.Generation {
		p.stopped[n.name] = true
		p.decide(api.VerdictWait, api.ReasonStopping, n.object(), "its glusterd and bricks are stopping, to be started again: %s", n.releases())
	}
}

// releases says which release is installed, and which one runs.
func (n *node) releases() string {
	if n.report.Installed == n.report.Version {
		return fmt.Sprintf("GlusterFS %s was installed", n.report.Installed)
	}
	return fmt.Sprintf("GlusterFS %s is installed, and %s runs", n.report.Installed, cmp.Or(n.report.Version, "an older one"))
}

// mayRestartNode says whether the pool can do without a node for a moment.
func (p *planner) mayRestartNode(n *node, turn string) bool {
	keep := func(verdict api.Verdict, reason api.Reason, format, why string) bool {
		p.kept[n.name] = why
		p.decide(verdict, reason, n.object(), format, n.releases(), why)
		return false
	}
	if sets.Older(n.report.Installed, n.report.Version) {
		p.decide(api.VerdictSkip, api.ReasonUnsupported, n.object(), "%s: not restarted, because a pool cannot be downgraded", n.releases())
		return false
	}
	if turn != "" {
		return keep(api.VerdictWait, api.ReasonOneAtATime, "%s. %s", fmt.Sprintf("Node %s is restarted first", turn))
	}
	if against := p.cannotStop(n); !against.None() {
		// What does not pass by itself is not waited for: the node serves well as it is.
		verdict := map[bool]api.Verdict{true: api.VerdictWait, false: api.VerdictSkip}[against.Verdict == api.VerdictWait]
		return keep(verdict, against.Reason, "%s. It is not restarted: %s", against.Message)
	}
	if why := p.notHealed(n); why != "" {
		return keep(api.VerdictWait, api.ReasonDataNotClean, "%s. It is restarted later: %s", why)
	}
	return true
}

// notHealed says which brick beside one of the node's lacks something. It also counts where nobody says how the node's own brick is.
func (p *planner) notHealed(n *node) string {
	for _, v := range p.volumes {
		if v.pool == nil || v.pool.State != glusterd.VolumeStarted {
			continue
		}
		for _, set := range v.pool.Sets() {
			own := func(b glusterd.Brick) bool { return p.nodeOf(&b) == n }
			if rest := slices.DeleteFunc(slices.Clone(set), own); len(rest) < len(set) {
				if why := sets.NotClean(rest); why != "" {
					return fmt.Sprintf("volume %s: %s", v.name, why)
				}
			}
		}
	}
	return ""
}

// dropped is the option that has to go from a node's stored volumes before its glusterd starts the next time; usually none.
func (p *planner) dropped(n *node) string {
	if n.report == nil || release(n.report.Version) >= goneIn || release(n.report.Installed) < goneIn {
		return ""
	}
	if slices.ContainsFunc(p.nodes, func(o *node) bool { return o.report != nil && release(o.report.Version) >= goneIn }) {
		return optionGone
	}
	return ""
}

// release is the first number of a version.
func release(version string) (n int) {
	_, _ = fmt.Sscanf(version, "%d", &n) // what is no number is 0
	return n
}
