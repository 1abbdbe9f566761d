package ceph

import (
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// noteLost finds the hosts that no StorageNode means any more, and since when. That stands in all Daemons of the host, because a leader keeps
// nothing in mind, and because some of them go before others.
func (p *planner) noteLost() {
	unmeant := p.unmeant()
	p.lost = map[string]time.Time{}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if !unmeant(d.Spec.Host) {
			continue
		}
		since, err := time.Parse(time.RFC3339, memory.Of(d, memory.LostSince))
		if err != nil {
			since = p.now.UTC().Truncate(time.Second)
		}
		if was, ok := p.lost[d.Spec.Host]; !ok || since.Before(was) {
			p.lost[d.Spec.Host] = since
		}
	}
}

// grace is how much longer nothing leaves a host for want of a StorageNode. A node that gets another name, or is deleted and declared again, is
// gone for a moment; the data of its OSDs would move away and back.
func (p *planner) grace(host string) time.Duration {
	since, lost := p.lost[host]
	if !lost {
		return 0
	}
	left := max(0, p.waits.NodeGone-p.now.Sub(since))
	p.plan.Pause = max(p.plan.Pause, left)
	return left
}

// mourn waits for a node that may be declared again, before any of a host's OSDs leaves.
func (p *planner) mourn(u *upkeep) bool {
	if slices.ContainsFunc(u.daemons, drains) || p.grace(u.host) == 0 {
		return true
	}
	return p.await(u, api.ReasonGracePeriod,
		"host %s has no StorageNode any more; its daemons stay for %v, in case the StorageNode is being renamed",
		u.host, p.waits.NodeGone)
}

// awaitNode tells of a mon or mgr that it waits, too.
func (p *planner) awaitNode(daemon, host string) {
	p.moving = true
	p.decide(api.VerdictWait, api.ReasonGracePeriod, daemon, "%s: it moves after %v",
		unmeantReason(host), p.waits.NodeGone)
}
