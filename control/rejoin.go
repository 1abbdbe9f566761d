package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// defaultAskRemoved is longer than the members of etcd take to elect a leader. A control plane all
// of whose servers start with a token, as after a power cut, comes up so much later.
const defaultAskRemoved = 10 * time.Second

// rejoin joins a server again whose host was removed, under the name and key that it had, and as a
// standby: its data counts no more, and is set aside as that of any lost seat. A server that was
// not removed, or of which nobody can say so, stays what it is, and the token unused.
func (s *startup) rejoin(ctx context.Context, text string) error {
	if !s.settings.Rejoining {
		why, err := s.stays(ctx, text)
		if err != nil {
			return err
		}
		if why != "" {
			s.log.Warn("the token that this server was started with is not used: "+why, "server", s.settings.Name)
			return nil
		}
		s.log.Info("the other servers refuse the host of this server; joining again", "server", s.settings.Name)
		// Whatever is cut off from here on is done again: the others may have taken it in, and what
		// they sent be written in part.
		s.settings.Rejoining, s.settings.Unpresented = true, false
		if err := s.setSeat(seatNone, ""); err != nil {
			return err
		}
	} else if err := s.sameAsBefore(text); err != nil {
		return err
	}
	if err := s.dir.setAside(s.settings.Generation, s.log); err != nil {
		return err
	}
	if err := s.join(ctx, text); err != nil {
		return err
	}
	s.settings.Rejoining = false // it is saved with what the others sent
	return nil
}

// stays says why a server does not join again; "" when it shall, because the others said clearly
// that it was removed.
func (s *startup) stays(ctx context.Context, text string) (why string, err error) {
	if s.identity, err = s.dir.openIdentity(s.settings); err != nil {
		return "", err
	}
	host, err := endpoints.Open(s.dir.host())
	if err != nil {
		return fmt.Sprintf("the list of servers is unknown (%v), so none can confirm that this one was removed", err), nil
	}
	told := false
	for end := time.Now().Add(s.settings.askRemoved); ; _ = pause(ctx, askEvery) {
		why, sure := s.memberStill(ctx, host)
		if why == "" {
			why, sure = hostStill(ctx, host)
		}
		last := ctx.Err() != nil || time.Now().After(end)
		switch {
		case why == "":
			return "", s.sameAuthority(text)
		case sure || last:
			return why, nil
		case !told:
			s.log.Info("asking again whether this server was removed", "for", s.settings.askRemoved, "error", why)
			told = true
		}
	}
}

// memberStill says why the server has to be taken for a member of etcd, and is sure when the others
// say so, and not when none can say anything.
func (s *startup) memberStill(ctx context.Context, host *endpoints.Servers) (why string, sure bool) {
	others := othersIn(host, s.settings.endpoint())
	earlier := func(r reply) bool { return r.Generation < s.settings.Generation }
	replies := slices.DeleteFunc(s.askAll(ctx, others, false), earlier)
	switch {
	case len(replies) == 0:
		return fmt.Sprintf("no other server can confirm that this one was removed, because none answers, or they have no quorum: start it with the token again "+
			"when they do. If it was removed before a 'holdfast ca rotate', they refuse it: move server.json, pki, host and etcd aside, which "+
			"are in %s, and start it with the token again", s.dir), false
	case slices.ContainsFunc(replies, func(r reply) bool { return r.Member }):
		return "this server is a member of etcd. If its Host was deleted, it comes back with this start; if it is being removed, wait for the end of that", true
	}
	return "", true
}

// hostStill says why the server's host has to be taken for one that was not removed, and is sure
// when the API says so. Only a clear word counts, as for an agent.
func hostStill(ctx context.Context, host *endpoints.Servers) (why string, sure bool) {
	if host.Expired(time.Now()) != "" {
		return "", true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	switch _, err := endpoints.List(ctx, host.Config()); {
	case err == nil:
		return "this server has joined already, and was not removed", true
	case apierrors.IsUnauthorized(err):
		return "", true
	default:
		return fmt.Sprintf("cannot check whether the host of this server was removed: %v; start it with the token again", err), false
	}
}

// sameAsBefore is sameAuthority of a server that was cut off while it joined again, maybe with
// another token. What it wrote of its identity may be whole or not; where it cannot be read,
// nothing says to which control plane the server belonged.
func (s *startup) sameAsBefore(text string) (err error) {
	if s.identity, err = s.dir.openIdentity(s.settings); err != nil {
		s.log.Warn("the identity of this server cannot be read, so the token is not compared with it", "error", err)
		return nil
	}
	return s.sameAuthority(text)
}

// sameAuthority refuses a token of another control plane before anything is set aside for it.
func (s *startup) sameAuthority(text string) error {
	token, err := join.Parse(text)
	if err != nil {
		return err
	}
	for _, ca := range s.identity.trust() {
		if pki.Fingerprint(ca) == token.Fingerprint {
			return nil
		}
	}
	return fmt.Errorf("the data directory %s belongs to another control plane than the token: create a token, with 'holdfast token create --role server', "+
		"on a server of the control plane that this server was removed from, or choose another directory with --data-dir", s.dir)
}
