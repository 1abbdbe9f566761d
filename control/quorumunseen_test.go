package control_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// leads waits until one of the servers leads etcd, and has looked at the members, and returns which.
func (c *crew) leads(but int) (i int, status *quorumview.Status) {
	c.t.Helper()
	eventually(c.t, func() error {
		i = slices.IndexFunc(c.servers, func(s *control.Server) bool {
			status = s.Quorum()
			return status != nil && (but < 0 || s != c.servers[but])
		})
		if i < 0 {
			return errors.New("none of the others leads etcd")
		}
		return nil
	})
	return i, status
}

// TestQuorum_unseen: who has come to lead etcd just now, and has not looked at the members, says that, and no numbers that would be taken for the truth.
func TestQuorum_unseen(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "unseen", 1)
	c.leads(-1)
	eventually(t, func() error { // it looks again any moment
		c.servers[0].Unlook()
		_, err := quorumview.Ask(timeout(t), c.servers[0].Config())
		if c.servers[0].Quorum() != nil || err == nil {
			err = errors.New("it has looked")
		}
		return err
	}, quorumview.ErrUnseen)
}
