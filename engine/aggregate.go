package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/figures"
	"github.com/holdfast-storage/holdfast/engine/outside"
)

// Bounds of the API's schema.
const (
	maxReasons      = 64
	maxDaemonCounts = 64
)

// Aggregate adds to what the driver says of the storage system what can be counted of any: nodes and agents that are down,
// daemons by type and version. It is pure, and where nothing changed its result equals the status that there is.
func Aggregate(v *View, p *Plan, now time.Time) api.StorageStatusStatus {
	s := keepStale(v, p.Status, now)
	if changed := outside.Changes(p.Decisions, ChangedBefore(v), now); len(changed) > 0 || s.StaleSince == nil {
		s.ChangedOutside = changed
	}
	s.Reasons = slices.Clone(s.Reasons)
	s.NodesDown, s.AgentsDown = 0, 0
	for _, name := range nodesDown(v) {
		s.NodesDown++
		addReason(&s, fmt.Sprintf("node/%s: none of its daemons runs", name))
	}
	for _, h := range silentHosts(v) {
		s.AgentsDown++
		addReason(&s, fmt.Sprintf("host/%s: agent disconnected; its daemons may still run", h))
	}
	for _, text := range twinHosts(v) {
		addReason(&s, text)
	}
	s.Daemons = countDaemons(v, p)
	figures.Settle(v.Status, &s, now)
	return s
}

// ChangedBefore is what the last orchestration found changed in the storage system itself.
func ChangedBefore(v *View) []api.OutsideChange {
	if v.Status == nil {
		return nil
	}
	return v.Status.Status.ChangedOutside
}

// addReason adds a reason to those that keep the status from ONLINE.
func addReason(s *api.StorageStatusStatus, reason string) {
	if s.Status != api.StorageOnline && len(s.Reasons) < maxReasons {
		s.Reasons = append(s.Reasons, reason)
	}
}

// keepStale keeps what the storage system said last when it says nothing now, and since when. Without it a person would see
// nothing at the very moment when the last known state matters most (Replicante's rewrite kept old records as "not fresh").
func keepStale(v *View, s api.StorageStatusStatus, now time.Time) api.StorageStatusStatus {
	s.StaleSince = nil
	if s.Health != "" || v.Status == nil || v.Status.Status.Health == "" || v.Cluster.DeletionTimestamp != nil {
		return s
	}
	kept := *v.Status.Status.DeepCopy()
	kept.Type, kept.Status, kept.Message, kept.Reasons = s.Type, s.Status, s.Message, s.Reasons
	if kept.StaleSince == nil {
		kept.StaleSince = toSecond(now)
	}
	return kept
}

// nodesDown are the names of the nodes that are down by their own agents' word, sorted.
func nodesDown(v *View) []string {
	down := hostsDown(v.Daemons)
	var names []string
	for i := range v.Nodes {
		if h := v.Nodes[i].Status.Host; h != "" && down[h] {
			names = append(names, v.Nodes[i].Name)
		}
	}
	return names
}

// hostsDown are the hosts on which, of the daemons that shall run, none does, and one has ended. Only what the host's own
// agent reported counts: of a host that lost its power the last word is that its daemons run (Replicante's principle that a
// node's events come from the node alone). A host whose daemons are on their way for the first time is not down.
func hostsDown(daemons []api.Daemon) map[string]bool {
	down, runs := map[string]bool{}, map[string]bool{}
	for i := range daemons {
		d := &daemons[i]
		if d.DeletionTimestamp != nil || d.Spec.State != api.WantRunning {
			continue
		}
		runs[d.Spec.Host] = runs[d.Spec.Host] || d.Status.State == api.DaemonRunning
		down[d.Spec.Host] = down[d.Spec.Host] || d.Status.LastExit != nil
	}
	maps.DeleteFunc(down, func(host string, ended bool) bool { return !ended || runs[host] })
	return down
}

// silentHosts are the hosts of the cluster whose agent is not heard, sorted.
func silentHosts(v *View) []string {
	used := v.UsedHosts()
	var names []string
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if used[h.Name] && !h.AgentHeard() {
			names = append(names, h.Name)
		}
	}
	return names
}

// countDaemons counts the daemons that shall be there, those that the plan makes among them.
func countDaemons(v *View, p *Plan) []api.DaemonCount {
	type kind struct{ name, version string }
	counts := map[kind]*api.DaemonCount{}
	count := func(d *api.Daemon) {
		k := kind{d.Spec.Type, d.Status.Version}
		if counts[k] == nil {
			counts[k] = &api.DaemonCount{Type: k.name, Version: k.version}
		}
		counts[k].Wanted++
		if d.Status.State == api.DaemonRunning {
			counts[k].Running++
		}
	}
	for i := range v.Daemons {
		if d := &v.Daemons[i]; d.DeletionTimestamp == nil && d.Spec.State != api.WantStopped {
			count(d)
		}
	}
	for i := range p.Daemons {
		if p.Daemons[i].New {
			count(&p.Daemons[i].Daemon)
		}
	}
	all := make([]api.DaemonCount, 0, len(counts))
	for _, c := range counts {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b api.DaemonCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Version, b.Version))
	})
	return all[:min(len(all), maxDaemonCounts)]
}

// nodesUpDown tells of nodes that went down or came up again.
func (d *differ) nodesUpDown(before, after *View) {
	was, is := hostsDown(before.Daemons), hostsDown(after.Daemons)
	runs := map[string]bool{}
	for i := range after.Daemons {
		runs[after.Daemons[i].Spec.Host] = runs[after.Daemons[i].Spec.Host] || after.Daemons[i].Status.State == api.DaemonRunning
	}
	for i := range after.Nodes {
		switch n := &after.Nodes[i]; {
		case is[n.Status.Host] && !was[n.Status.Host]:
			d.add(NodeDown, "node/"+n.Name, "no daemon of the node runs on host %s", n.Status.Host)
		case was[n.Status.Host] && !is[n.Status.Host] && runs[n.Status.Host]:
			d.add(NodeUp, "node/"+n.Name, "a daemon of the node runs again on host %s", n.Status.Host)
		}
	}
}
