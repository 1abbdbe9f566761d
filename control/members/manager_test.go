package members

import (
	"slices"
	"testing"

	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// TestTell_keepsSteps: the leader keeps the steps that it did until the first event is written,
// which tells them apart from how the members were before.
func TestTell_keepsSteps(t *testing.T) {
	q := &Manager{events: &Log{}, steps: []quorum.Step{{Verb: quorum.Add, Server: "b"}}}
	unconfirmed := quorum.View{Members: []quorum.Member{{ID: 1, Name: "a", Voter: true}}}
	q.tell(t.Context(), nil, &unconfirmed, quorum.Plan{})
	if !slices.ContainsFunc(q.steps, func(s quorum.Step) bool { return s.Server == "b" }) {
		t.Errorf("nothing was told yet, and the steps are %+v", q.steps)
	}
	q.events.told.Members = map[uint64]quorum.Seat{1: {Server: "a", Voter: true}}
	q.tell(t.Context(), nil, &unconfirmed, quorum.Plan{})
	if q.steps != nil {
		t.Errorf("all is told, and the steps are %+v", q.steps)
	}
}
