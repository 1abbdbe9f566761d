package gluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// What the pool is like is known from reports, and those come some seconds later than the word of an agent that a glusterd was stopped or
// started. Who reads in one that a brick serves, which was stopped and started since, would stop the next node too soon.

// notBack names a node beside which another one has bricks, and that is not back from its own stop, or of whose start the speaker has
// not told yet.
func (p *planner) notBack(n *node) string {
	for _, o := range p.nodes {
		d := o.daemon
		if o == n || d == nil || o.Host == nil || !o.Host.AgentHeard() || o.Host.ModeOf() != api.HostActive || !p.share(n, o) {
			continue
		}
		if d.Status.State != api.DaemonRunning || d.Status.ObservedGeneration != d.Generation {
			return fmt.Sprintf("the glusterd of node %s is %s", o.name, cmp.Or(d.Status.State, api.DaemonPending))
		}
	}
	if last := p.lastStart(); last != "" && p.speaker.daemon.Spec.Parameters[glusterd.ParamAfter] != last {
		return fmt.Sprintf("node %s reports on the pool now", p.speaker.name)
	}
	return ""
}

// share says whether a set of a volume has bricks of both nodes.
func (p *planner) share(a, b *node) bool {
	for _, v := range p.volumes {
		if v.pool == nil {
			continue
		}
		for _, set := range v.pool.Sets() {
			on := func(n *node) bool {
				return slices.ContainsFunc(set, func(x glusterd.Brick) bool { return p.nodeOf(&x) == n })
			}
			if on(a) && on(b) {
				return true
			}
		}
	}
	return false
}

// lastStart is when another glusterd than the speaker's was started the last time; nothing if that is long ago.
func (p *planner) lastStart() string {
	last := p.now.Add(-p.waits.GlusterBack)
	found := false
	for _, n := range p.nodes {
		if n != p.speaker && n.daemon != nil && n.daemon.Status.Started != nil && n.daemon.Status.Started.After(last) {
			last, found = n.daemon.Status.Started.Time, true
		}
	}
	if !found {
		return ""
	}
	return last.UTC().Format(time.RFC3339Nano)
}

// after is the moment that the next report of a node has to come after. Who speaks for the pool is
// given it while nodes are to be stopped, or may be at any time: its Daemon is another one by that,
// and a report names the Daemon that it was made for.
func (p *planner) after(n *node) string {
	if last := p.lastStart(); last != "" && n == p.speaker && p.successor == nil && slices.ContainsFunc(p.nodes, p.toStop) {
		return last
	}
	if n.daemon == nil {
		return ""
	}
	return n.daemon.Spec.Parameters[glusterd.ParamAfter]
}

// toStop says whether a node that runs is to be stopped, for a restart or because its host is to be
// in maintenance; or may be, because the restart of its glusterd alone is a stop of its bricks.
func (p *planner) toStop(n *node) bool {
	return n.outdated() || n.running() && (n.takesBricksAlong() || p.hosts[n.hostName()].ModeOf() == api.HostMaintenance)
}
