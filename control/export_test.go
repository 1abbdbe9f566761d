package control

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/apiserver"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// QuorumLog is what one leader of etcd knows of the control plane's events.
type QuorumLog struct{ events *quorumEvents }

// NewQuorumLog returns one whose events lie in a namespace of the test's own.
func NewQuorumLog(config *rest.Config, namespace string) (*QuorumLog, error) {
	events, err := newQuorumEvents(config)
	if err == nil {
		events.namespace = namespace
	}
	return &QuorumLog{events}, err
}

// Read is done before a look at the members, and Tell after it.
func (l *QuorumLog) Read(ctx context.Context) error { return l.events.read(ctx) }

// Tell tells what is new.
func (l *QuorumLog) Tell(ctx context.Context, view quorum.View, plan quorum.Plan) error {
	return l.events.tell(ctx, view, plan, nil)
}

// Leads tells that a server acts for all.
func (l *QuorumLog) Leads(ctx context.Context, server string) error {
	return l.events.leads(ctx, server)
}

// Unlook has a server know nothing of the members of etcd, as when its member has come to lead just now.
func (s *Server) Unlook() {
	s.quorum.mu.Lock()
	defer s.quorum.mu.Unlock()
	s.quorum.seen = time.Time{}
}

// MostWatches is how many watches one client may have.
const MostWatches = apiserver.MostWatches
