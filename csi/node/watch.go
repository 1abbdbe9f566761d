package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// Reason is why a pod gets an event about its volume.
type Reason string

// The reasons.
const (
	// Carried says which process carries the volume, and how.
	Carried Reason = "VolumeCarried"
	// CarrierEnded says that the process that carries the volume has ended, and what to do.
	CarrierEnded Reason = "VolumeCarrierEnded"
)

// Notice is an event for the user of a volume.
type Notice struct {
	Pod     Pod
	Volume  string
	Reason  Reason
	Message string
}

// Watch looks at all staged volumes every so often until ctx ends, and notifies their users when a volume is carried,
// and when it works no longer. Each pod gets each notice once, also from several runs of the driver. A notice that
// fails is repeated at the next look.
func (s *Server) Watch(ctx context.Context, every time.Duration, notify func(context.Context, Notice) error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.look(ctx, notify); err != nil {
			s.cfg.Log.Warn("cannot notify the users of volumes", "error", err)
		}
	}
}

// look looks at each volume once.
func (s *Server) look(ctx context.Context, notify func(context.Context, Notice) error) error {
	dirs, err := filepath.Glob(filepath.Join(s.cfg.Dir, "*", stateFile))
	if err != nil {
		return err
	}
	var failed error
	for _, path := range dirs {
		v, found, err := load(filepath.Dir(path))
		if err == nil && found && s.backends[v.Handle.Backend] != nil {
			err = s.notifyUsers(ctx, s.backends[v.Handle.Backend], v, notify)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another call has removed it
			failed = errors.Join(failed, fmt.Errorf("volume in %s: %w", filepath.Dir(path), err))
		}
	}
	return failed
}

// notifyUsers sends the users of a volume the notices that they do not have.
func (s *Server) notifyUsers(
	ctx context.Context, b backend.Node, v backend.Volume, notify func(context.Context, Notice) error,
) error {
	reason, message := Carried, b.Way(v)
	if problem := b.Problem(ctx, v); problem != "" {
		reason, message = CarrierEnded, problem
	}
	all := users{}
	if _, err := read(filepath.Join(v.Dir, usersFile), &all); err != nil {
		return err
	}
	for target, u := range all {
		if u.Notified == reason {
			continue
		}
		notice := Notice{Pod: u.Pod, Volume: v.Handle.Name, Reason: reason, Message: message}
		if err := notify(ctx, notice); err != nil {
			return fmt.Errorf("pod %s/%s: %w", u.Namespace, u.Name, err)
		}
		if err := s.noteNotified(v.ID, target, u.Pod, reason); err != nil {
			return err
		}
	}
	return nil
}

// noteNotified notes what a pod knows, if it still uses the volume.
func (s *Server) noteNotified(id, target string, p Pod, reason Reason) error {
	return s.change(id, func(all users) bool {
		u, found := all[target]
		if !found || u.Pod != p || u.Notified == reason {
			return false
		}
		u.Notified = reason
		all[target] = u
		return true
	})
}
