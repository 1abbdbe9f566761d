package etcd

import (
	"cmp"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// discriminating is the label of the largest failure domain that tells servers apart; empty when none does.
func discriminating(servers []Server) string {
	for _, label := range slices.Backward(api.LocationLabels()) {
		values := map[string]bool{}
		for _, s := range servers {
			values[s.Labels[label]] = true
		}
		if len(values) > 1 {
			return label
		}
	}
	return ""
}

// crowd counts the seats, but those of losing voters, in the failure domain that a server has at a label.
func (p *planner) crowd(name, label string) int {
	count := 0
	for _, m := range slices.Concat(p.keeping, p.learners) {
		if m.Name != name && p.servers[m.Name].Labels[label] == p.servers[name].Labels[label] {
			count++
		}
	}
	return count
}

// crowds are the counts from the largest failure domain to the smallest.
func (p *planner) crowds(name string) []int {
	var counts []int
	for _, label := range slices.Backward(api.LocationLabels()) {
		counts = append(counts, p.crowd(name, label))
	}
	return counts
}

// candidate is the standby that should have the next seat: in the emptiest failure domain, then by name.
func (p *planner) candidate() (string, bool) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.servers)) {
		s := p.servers[name]
		seated := slices.ContainsFunc(slices.Concat(p.voters, p.learners), func(m Member) bool { return m.Name == name })
		failed := !s.Failed.IsZero() && p.now.Sub(s.Failed) < p.RetryAfter
		active := s.Mode == "" || s.Mode == api.HostActive
		if s.Asks.Good && s.Removed.IsZero() && active && !seated && !failed {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(slices.Compare(p.crowds(a), p.crowds(b)), cmp.Compare(a, b))
	}), true
}

// spreads says whether a server, a candidate or learner, would lie in a domain with at least two seats fewer than the most
// crowded one: then it betters the spread to exchange them, and it cannot be bettered back. Who is about to go makes room anyway.
func (p *planner) spreads(name string) bool {
	if p.key == "" || len(p.keeping) < 2 || slices.ContainsFunc(p.keeping, p.leaving) {
		return false
	}
	return p.crowd(p.mostCrowded().Name, p.key)+1 >= p.crowd(name, p.key)+2
}

// mostCrowded is the voter that the spread can spare first. The leader is spared where it can be.
func (p *planner) mostCrowded() Member {
	return slices.MaxFunc(p.keeping, func(a, b Member) int {
		return cmp.Or(
			cmp.Compare(p.crowd(a.Name, p.key), p.crowd(b.Name, p.key)),
			boolCompare(a.Name != p.leader, b.Name != p.leader),
			slices.Compare(p.crowds(a.Name), p.crowds(b.Name)), cmp.Compare(a.Name, b.Name),
		)
	})
}
