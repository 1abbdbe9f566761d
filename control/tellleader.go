package control

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// TellLeader tells in the control plane's events that this server leads, unless the last leader was this server, too. It tries until that is
// told or ctx ends. config carries the leader's token, so that one that leads no more tells nothing.
func (s *Server) TellLeader(ctx context.Context, config *rest.Config) error {
	events, err := newQuorumEvents(config)
	if err != nil {
		return err
	}
	for failures := 1; ; failures++ {
		call, cancel := context.WithTimeout(ctx, tellTimeout)
		err := events.leads(call, s.Name())
		cancel()
		if err == nil {
			return nil
		}
		s.log.Debug("the event of this leader is written later", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff.Pause("tellLeader", failures)):
		}
	}
}
