package control

import (
	"context"
	"fmt"

	"github.com/holdfast-storage/holdfast/control/etcd"
)

// knownBy is the address that the members of etcd know a server by; empty where it is that of its start, and for a
// server that is no member.
func (s *settings) knownBy(stored *settings) string {
	was := first(stored.Was, stored.Address)
	if was == s.Address || stored.Seat != seatHeld {
		return ""
	}
	return was
}

// peerURL is where the other members reach this server's, as they know it.
func (s *Server) peerURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return etcd.PeerURL(first(s.settings.Was, s.settings.Address), s.settings.EtcdPeerPort)
}

// newURL is where the other members will reach this server's; empty unless its address changed.
func newURL(s *Server) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Was == "" {
		return ""
	}
	return etcd.PeerURL(s.settings.Address, s.settings.EtcdPeerPort)
}

// updatePeerURL has the members of etcd know the server by the address that it was started with, where that is
// another one than before. The member works before that: it connects to the others, which is enough for etcd (etcd
// docs, "Runtime reconfiguration: update a member").
func updatePeerURL(ctx context.Context, s *Server, member *etcd.Member) error {
	url := newURL(s)
	if url == "" {
		return nil
	}
	if err := etcd.Move(ctx, member, url); err != nil {
		return fmt.Errorf("while changing the address of this server among the members of etcd to %s, which was %s: %w",
			s.settings.Address, s.settings.Was, err)
	}
	s.log.Info("the members of etcd know the new address of this server",
		"was", s.settings.Was, "now", s.settings.Address)
	s.mu.Lock()
	s.settings.Was = ""
	s.mu.Unlock()
	return s.dir.save(s.settings)
}
