package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// seatState says whether a server holds a member of etcd: a seat. It is written down before what it
// announces is done, so that a server that was killed goes on from there.
type seatState string

const (
	// seatHeld: the server has a member, with its data.
	seatHeld seatState = ""
	// seatTaking: it was given a seat, and may have begun to fill it.
	seatTaking seatState = "taking"
	// seatNone: it is a standby: it runs neither etcd nor an API, asks for a seat, and what lies in
	// etcd/ counts no more.
	seatNone seatState = "standby"
)

// errUnseated says that the server does not belong to the members any more.
var errUnseated = errors.New("this server holds no member of etcd any more")

// setSeat writes the state down.
func (s *Server) setSeat(state seatState, existing string) error {
	s.settings.Seat, s.settings.Existing = state, existing
	if err := s.dir.save(s.settings); err != nil {
		return fmt.Errorf("while writing down that this server is %q: %w", state, err)
	}
	return nil
}

// serve holds a seat, or waits for one, until the server is stopped or cannot go on.
func (s *Server) serve() {
	for s.running.Err() == nil {
		var err error
		if s.member() != nil {
			if err = s.seat.hold(); errors.Is(err, errUnseated) {
				err = s.standUp()
			}
		} else {
			err = s.await()
		}
		if err != nil && s.running.Err() == nil {
			s.failed <- mender{s}.noteEnd(err)
			return
		}
	}
}

// await asks for a seat until there is one, and takes it.
func (s *Server) await() error {
	if s.damage != nil && s.damage.Kept == "" {
		return mender{s}.replace()
	}
	if s.settings.Seat == seatTaking && s.dir.hasLog() {
		if err := s.take(s.settings.Existing); err != nil || s.member() != nil {
			return err
		}
	}
	generation := s.settings.Generation // of what is there
	copying, stop := context.WithCancel(s.running)
	var copies sync.WaitGroup
	copies.Go(func() {
		s.backups.schedule(copying, func(ctx context.Context) error { return s.backups.copy(ctx, s.host.others()) })
	})
	offer := (&standby{Server: s}).askForSeat()
	stop()
	copies.Wait()
	if offer == nil {
		return nil
	}
	// What is there is of an earlier seat, which was given up, and the server ended before it was
	// moved; or of this one, which it could not fill.
	if err := s.dir.setAside(generation, s.log); err != nil {
		return err
	}
	if err := s.setSeat(seatTaking, offer.Existing); err != nil {
		return err
	}
	return s.take(offer.Existing)
}

// take fills the seat that the server was given. That it was taken away again meanwhile is no
// error.
func (s *Server) take(existing string) error {
	s.settings.Existing = existing
	err := s.sit(s.running)
	switch {
	case err == nil:
		s.log.Info("this server holds a member of etcd now", "members", s.member().Names())
		return nil
	case s.running.Err() != nil:
		return nil //nolint:nilerr // the server is being stopped
	case errors.Is(err, errUnseated), s.seat != nil && s.seat.removed(), s.unseated(s.running):
		return s.standUp()
	case errors.As(err, new(*etcd.Damage)):
		return mender{s}.wait(err)
	case etcd.Fatal(err):
		return err
	}
	s.log.Warn("this server could not start its new member of etcd; retrying", "error", err)
	s.leave()
	return pause(s.running, time.Second)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return nil
}

// sit takes the seat, and returns when its member and the API are ready. What was started when it
// fails is stopped by leave.
func (s *Server) sit(ctx context.Context) error {
	listener, err := listen(ctx, s.settings, s.log)
	if err != nil {
		return err
	}
	seat := newSeat(s)
	s.mu.Lock()
	s.seat = seat
	s.mu.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	release := context.AfterFunc(seat.ctx, func() { stop(context.Cause(seat.ctx)) })
	defer release()
	asked := make(chan struct{})
	seat.running.Go(func() { seat.watch(asked) })
	if err := seat.start(ctx, listener); err != nil {
		return err
	}
	// Nobody is served, and nobody leads, by data of an earlier life: the others were asked first,
	// if they can be reached.
	select {
	case <-asked:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if seat.ctx.Err() != nil {
		return context.Cause(seat.ctx)
	}
	seat.api.Open()
	if err := errors.Join(s.setSeat(seatHeld, s.settings.Existing), damaged.Mended(string(s.dir))); err != nil {
		return err
	}
	s.damage = nil
	seat.work()
	s.changeSeat(seat.ctx)
	return nil
}

// leave ends the seat, if there is one.
func (s *Server) leave() {
	s.changeSeat(nil) //nolint:staticcheck // no context: the seat is not held
	if s.seat == nil {
		return
	}
	s.seat.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seat = nil
}

// standUp makes a standby of a server that held a seat.
func (s *Server) standUp() error {
	s.log.Warn("this server releases its member of etcd and becomes a standby: it was replaced, removed, or is of an earlier generation")
	s.leave()
	if err := s.setSeat(seatNone, ""); err != nil {
		return err
	}
	if err := s.dir.setAside(s.settings.Generation, s.log); err != nil {
		return err
	}
	return s.writeStandbyAdmin()
}

// writeStandbyAdmin has the administrator's kubeconfig name another server, until one of them
// answers; see adminOver.
func (s *Server) writeStandbyAdmin() error {
	if others := s.host.others(); len(others) > 0 {
		return s.identity.writeAdmin(others[0], time.Now())
	}
	return nil
}

// changeSeat tells those who wait that the seat is held (until ctx ends), or is not.
func (s *Server) changeSeat(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = ctx
	close(s.changed)
	s.changed = make(chan struct{})
}

// WhileSeated runs f each time that the server holds a seat, until ctx ends or f returns an error
// while the seat is held. The context that f gets ends with the seat.
func (s *Server) WhileSeated(ctx context.Context, f func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		holding, changed := s.holding, s.changed
		s.mu.Unlock()
		if holding == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		run, stop := context.WithCancel(ctx)
		release := context.AfterFunc(holding, stop)
		err := f(run)
		release()
		stop()
		if err != nil && holding.Err() == nil {
			return err
		}
	}
	return nil
}

// hasLog says whether a member has begun to run in etcd/.
func (d dataDir) hasLog() bool {
	entries, err := os.ReadDir(filepath.Join(d.etcd(), "member", "wal"))
	return err == nil && len(entries) > 0
}

// openStandby opens the identity of a standby's host, which it got when it joined or held a seat.
func (s *Server) openStandby() error {
	if err := s.host.open(); err != nil {
		return fmt.Errorf("%w; %s", err, cureOwn)
	}
	return s.writeStandbyAdmin()
}
