// Package quorumlog follows the control plane's own events: what became of the members of etcd. Tests compare what was told with what is.
package quorumlog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Story is what the events told.
type Story struct {
	// Votes says for each server with a member whether it votes.
	Votes map[string]bool
	// Degraded is set when the last word on all of them was a bad one.
	Degraded bool
	// Leader is the server that leads, as far as it was told.
	Leader string
	health string
	// restored is what the last restore was told to be.
	restored string
}

// Follow reads the whole log, in any order, which tells nothing of how the first server, the founder, got its seat. It fails where a
// number is missing or there twice, and where an event tells what was so before it.
func Follow(events []api.ClusterEvent, founder string) (*Story, error) {
	events = slices.SortedFunc(slices.Values(events), func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	s := &Story{Votes: map[string]bool{founder: true}}
	for i := range events {
		e := &events[i]
		if e.Sequence != int64(i+1) {
			return nil, fmt.Errorf("event %d has the number %d", i+1, e.Sequence)
		}
		was := maps.Clone(s.Votes)
		if !s.add(e.Code, e.Object, e.Message) {
			return nil, fmt.Errorf("event %d, %s %s %q, tells nothing new: the servers with a seat were %v, and all of them: %q",
				e.Sequence, e.Code, e.Object, e.Message, was, s.health)
		}
	}
	return s, nil
}

// add says whether an event follows from what was told before it.
func (s *Story) add(code, object, message string) (follows bool) {
	server := strings.TrimPrefix(object, "host/")
	votes, seated := s.Votes[server]
	switch code {
	case "QUORUM_MEMBER_ADDED":
		s.Votes[server] = false
		return !seated
	case "QUORUM_MEMBER_PROMOTED", "QUORUM_MEMBER_REPLACED":
		s.Votes[server] = true
		return seated && !votes
	case "QUORUM_MEMBER_REMOVED":
		delete(s.Votes, server)
		return seated
	case "QUORUM_DEGRADED", "QUORUM_HEALTHY":
		was := s.health
		s.health, _, _ = strings.Cut(message, ";") // How many failures are survived is beside it, and no difference.
		s.Degraded = code == "QUORUM_DEGRADED"
		return s.health != was
	case "QUORUM_RESTORED":
		was := s.restored
		s.restored = message
		return s.restored != was
	case "LEADER_CHANGED":
		was := s.Leader
		s.Leader = strings.TrimPrefix(object, "leader/")
		return s.Leader != was
	}
	return false
}
