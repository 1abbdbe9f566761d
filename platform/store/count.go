package store

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// SilentAgents counts the hosts whose agent is silent.
func (s *Store) SilentAgents() int {
	var hosts api.HostList
	s.list(&hosts)
	n := 0
	for i := range hosts.Items {
		if !hosts.Items[i].AgentHeard() {
			n++
		}
	}
	return n
}

// ActionStates counts the actions that there are, by their state; those that the leader has not
// looked at yet have none.
func (s *Store) ActionStates() map[api.ActionState]int {
	var actions api.ActionList
	s.list(&actions)
	states := map[api.ActionState]int{}
	for i := range actions.Items {
		states[actions.Items[i].Status.State]++
	}
	return states
}
