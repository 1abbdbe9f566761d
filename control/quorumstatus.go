package control

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-storage/holdfast/control/quorumview"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// Quorum is how the members of etcd are, if this server's member leads them, and has looked at them of late; nil otherwise. One
// whose disk hangs takes itself for the leader for as long as that lasts.
func (s *Server) Quorum() *quorumview.Status {
	s.memberMu.Lock()
	m, q := s.member, s.quorum
	s.memberMu.Unlock()
	if m == nil || q == nil || !m.Leads() {
		return nil
	}
	status := q.status(time.Now())
	if status == nil {
		return nil
	}
	status.DatabaseSize = m.DatabaseSize()
	status.LastBackup, _ = LastBackup(string(s.dir)) // Without one it is zero.
	return status
}

func (s *Server) serveQuorum(w http.ResponseWriter, _ *http.Request) {
	status := s.Quorum()
	switch {
	case status == nil && s.unseen():
		http.Error(w, quorumview.ErrUnseen.Error(), http.StatusServiceUnavailable)
		return
	case status == nil:
		http.Error(w, "this server does not lead etcd, or cannot observe its members", http.StatusMisdirectedRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // An error means that the client is gone.
}

// unseen says whether this server's member has come to lead etcd, and has not looked at the members yet.
func (s *Server) unseen() bool {
	s.memberMu.Lock()
	m, q := s.member, s.quorum
	s.memberMu.Unlock()
	if m == nil || q == nil || !m.Leads() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seen.IsZero()
}

// seenFor is how long a look at the members is told of: some more looks that failed, or took their time.
const seenFor = 20 * time.Second

func (q *quorumManager) status(now time.Time) *quorumview.Status {
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
		if s.Asks.Good && !seated[s.Name] {
			status.Standbys = append(status.Standbys, s.Name)
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
