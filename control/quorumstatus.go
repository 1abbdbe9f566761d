package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// QuorumPath is where a server says how the members of etcd are, to administrators and viewers.
const QuorumPath = "/holdfast/v1/quorum"

// QuorumStatus is how the members of etcd are, by the leader's word.
type QuorumStatus struct {
	Leader   string         `json:"leader"`
	Want     int            `json:"want"`
	Spare    int            `json:"spare"`
	Degraded string         `json:"degraded,omitempty"`
	Members  []QuorumMember `json:"members"`
	// Standbys are servers that hold no member and ask for a seat.
	Standbys  []string       `json:"standbys,omitempty"`
	Decisions []api.Decision `json:"decisions,omitempty"`
	// DatabaseSize is in bytes; LastBackup is the leader's own.
	DatabaseSize int64     `json:"databaseSize"`
	LastBackup   time.Time `json:"lastBackup,omitzero"`
}

// QuorumMember is one member.
type QuorumMember struct {
	Name  string `json:"name"`
	Voter bool   `json:"voter"`
	// Answers is set while the member does its part: a read by it holds all that was decided. Problem says why it does not.
	Answers bool      `json:"answers"`
	Since   time.Time `json:"since"`
	Problem string    `json:"problem,omitempty"`
}

// Quorum is how the members of etcd are, if this server's member leads them, and has looked at them of late; nil otherwise. One
// whose disk hangs takes itself for the leader for as long as that lasts.
func (s *Server) Quorum() *QuorumStatus {
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
		http.Error(w, ErrQuorumUnseen.Error(), http.StatusServiceUnavailable)
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

func (q *quorumManager) status(now time.Time) *QuorumStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen.IsZero() || now.Sub(q.seen) > seenFor {
		return nil
	}
	status := &QuorumStatus{
		Leader: q.view.Leader, Want: q.plan.Want, Spare: q.plan.Spare, Degraded: q.plan.Degraded, Decisions: q.plan.Decisions,
	}
	seated := map[string]bool{}
	for _, m := range q.view.Members {
		seated[m.Name] = true
		status.Members = append(status.Members, QuorumMember{m.Name, m.Voter, m.Etcd.Good, m.Etcd.Since, problem(&m)})
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

// ErrQuorumUnknown says that no server leads etcd: there is no quorum, or a leader is being elected.
var ErrQuorumUnknown = errors.New("no server knows the state of the members of etcd")

// ErrQuorumUnseen says that a server leads etcd since a moment ago, and can say in some seconds how the members are.
var ErrQuorumUnseen = errors.New("the server that leads etcd has just begun to lead, and has not observed the members yet: ask again in some seconds")

// Quorum asks the servers how the members of etcd are, with the rights of config: the one that it names, and, if that one does
// not lead, the others.
func Quorum(ctx context.Context, config *rest.Config) (*QuorumStatus, error) {
	status, err := askQuorum(ctx, config)
	if err == nil {
		return status, nil
	}
	servers, listErr := endpoints.List(ctx, config)
	if listErr != nil {
		return nil, fmt.Errorf("%w; %w", err, listErr)
	}
	var unseen error
	for _, server := range servers {
		other := rest.CopyConfig(config)
		other.Host = "https://" + server
		if status, err = askQuorum(ctx, other); err == nil {
			return status, nil
		}
		if errors.Is(err, ErrQuorumUnseen) {
			unseen = err // the others, which do not lead, say less
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrQuorumUnknown, cmp.Or(unseen, err))
}

func askQuorum(ctx context.Context, config *rest.Config) (*QuorumStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+QuorumPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%w (%s)", ErrQuorumUnseen, config.Host)
	}
	status := &QuorumStatus{}
	if err := readAnswer(response, 1<<20, status); err != nil {
		return nil, fmt.Errorf("while asking %s for the quorum: %w", config.Host, err)
	}
	return status, nil
}
