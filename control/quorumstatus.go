package control

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/members"
	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// Quorum is how the members of etcd are, if this server's member leads them, and has looked at them
// of late; nil otherwise. One whose disk hangs takes itself for the leader for as long as that
// lasts.
func (s *Server) Quorum() *quorumview.Status {
	seat := s.held()
	if seat == nil {
		return nil
	}
	return seat.quorumStatus().read()
}

// quorumStatus tells how the members of etcd are. Its methods may run at the same time.
type quorumStatus struct {
	dir    dataDir
	member *etcd.Member
	quorum *members.Manager
}

func (t *seat) quorumStatus() quorumStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return quorumStatus{t.server.dir, t.member, t.quorum}
}

// leads says whether the member leads etcd.
func (q quorumStatus) leads() bool { return q.member != nil && q.quorum != nil && q.member.Leads() }

// read is the status, or nil; see Server.Quorum.
func (q quorumStatus) read() *quorumview.Status {
	if !q.leads() {
		return nil
	}
	status := q.quorum.Status(time.Now())
	if status == nil {
		return nil
	}
	status.DatabaseSize = q.member.DatabaseSize()
	status.LastBackup, _ = LastBackup(string(q.dir)) // Without one it is zero.
	return status
}

func (q quorumStatus) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	status := q.read()
	switch {
	case status == nil && q.leads() && q.quorum.Unseen():
		http.Error(w, quorumview.ErrUnseen.Error(), http.StatusServiceUnavailable)
		return
	case status == nil:
		http.Error(w, "this server does not lead etcd, or cannot observe its members", http.StatusMisdirectedRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(status) // An error means that the client is gone.
}
