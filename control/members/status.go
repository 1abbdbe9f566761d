package members

import (
	"cmp"
	"time"

	"github.com/holdfast-storage/holdfast/control/quorumview"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// seenFor is how long a look at the members is told of: some more looks that failed, or took their
// time.
const seenFor = 20 * time.Second

// Status is what the manager saw at its last look, or nil if that was too long ago or its member
// did not lead.
func (q *Manager) Status(now time.Time) *quorumview.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen.IsZero() || now.Sub(q.seen) > seenFor {
		return nil
	}
	status := &quorumview.Status{
		Leader: q.view.Leader, Want: q.plan.Want, Spare: q.plan.Spare, Degraded: q.plan.Degraded, Decisions: q.plan.Decisions,
	}
	seated := map[string]bool{}
	for _, m := range q.view.Members {
		seated[m.Name] = true
		status.Members = append(status.Members, quorumview.Member{
			Name: m.Name, Voter: m.Voter, Answers: m.Etcd.Good, Since: m.Etcd.Since, Problem: problem(&m),
		})
	}
	for _, s := range q.view.Servers {
		f := q.full[s.Name]
		switch {
		case seated[s.Name]:
		case s.Asks.Good:
			status.Standbys = append(status.Standbys, s.Name)
		case now.Sub(f.at) < askedFor:
			problem := "it cannot hold a member of etcd: " + cmp.Or(f.why, "its disk has too little room: free some space there")
			status.Full = append(status.Full, quorumview.Full{Name: s.Name, Problem: problem})
		}
	}
	return status
}

// problem says why a member does not do its part.
func problem(m *quorum.Member) string {
	switch {
	case m.Etcd.Good:
		return ""
	case !m.Answers.Good && !m.Started:
		return "its server has not started the new member yet"
	case !m.Answers.Good:
		return "it does not answer: check that its server is on and reachable"
	case !m.Voter:
		return "it is being filled"
	}
	return "it answers, and does nothing: its disk hangs or is too slow (check 'dmesg' there), or it is catching up"
}

// Unseen says whether the manager has not looked at the members since its member came to lead etcd.
func (q *Manager) Unseen() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seen.IsZero()
}

// Unlook has the manager know nothing of the members, as when its member has come to lead just now;
// for tests.
func (q *Manager) Unlook() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen = time.Time{}
}
