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
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// seatState says whether a server holds a member of etcd: a seat. It is written down before what it announces is done, so that
// a server that was killed goes on from there.
type seatState string

const (
	// seatHeld: the server has a member, with its data.
	seatHeld seatState = ""
	// seatTaking: it was given a seat, and may have begun to fill it.
	seatTaking seatState = "taking"
	// seatNone: it is a standby: it runs neither etcd nor an API, asks for a seat, and what lies in etcd/ counts no more.
	seatNone seatState = "standby"
)

// errUnseated says that the server does not belong to the members any more.
var errUnseated = errors.New("this server holds no member of etcd any more")

// seat is what is told of a seat that is held.
type seat struct {
	ctx context.Context //nolint:containedctx // it is what a seat is: the time for which it is held
	end context.CancelCauseFunc
}

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
		if s.member != nil {
			if err = s.hold(); errors.Is(err, errUnseated) {
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

// hold returns when the seat is lost or cannot be held any more.
func (s *Server) hold() error {
	select {
	case err := <-s.member.Failed():
		return s.whyFailed(err)
	case err := <-s.apiDone:
		s.apiDone <- err // Who stops the API waits for it, too.
		return fmt.Errorf("the API server ended: %w", err)
	case <-s.seat.ctx.Done():
		return context.Cause(s.seat.ctx)
	case <-s.running.Done():
		return nil
	}
}

// whyFailed tells a member that was removed from one that failed.
func (s *Server) whyFailed(err error) error {
	if s.member.Removed() || s.unseated(s.running) {
		return errUnseated
	}
	s.abandoned = true
	return err
}

// await asks for a seat until there is one, and takes it.
func (s *Server) await() error {
	if s.damage != nil && s.damage.Kept == "" {
		return mender{s}.replace()
	}
	if s.settings.Seat == seatTaking && s.dir.hasLog() {
		if err := s.take(s.settings.Existing); err != nil || s.member != nil {
			return err
		}
	}
	generation := s.settings.Generation // of what is there
	copying, stop := context.WithCancel(s.running)
	var copies sync.WaitGroup
	copies.Go(func() { s.keepBackups(copying, s.backupEvery, s.copyBackup) })
	offer := s.askForSeat()
	stop()
	copies.Wait()
	if offer == nil {
		return nil
	}
	// What is there is of an earlier seat, which was given up, and the server ended before it was moved; or of this one, which it could not fill.
	if err := s.dir.setAside(generation, s.log); err != nil {
		return err
	}
	if err := s.setSeat(seatTaking, offer.Existing); err != nil {
		return err
	}
	return s.take(offer.Existing)
}

// take fills the seat that the server was given. That it was taken away again meanwhile is no error.
func (s *Server) take(existing string) error {
	s.settings.Existing = existing
	err := s.sit(s.running)
	switch {
	case err == nil:
		s.log.Info("this server holds a member of etcd now", "members", s.member.Names())
		return nil
	case s.running.Err() != nil:
		return nil //nolint:nilerr // the server is being stopped
	case errors.Is(err, errUnseated), s.member != nil && s.member.Removed(), s.unseated(s.running):
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

// sit starts the member and the API, and returns when they are ready. What was started when it fails is stopped by leave.
func (s *Server) sit(ctx context.Context) error {
	listener, err := listen(ctx, s.settings, s.log)
	if err != nil {
		return err
	}
	seatCtx, end := context.WithCancelCause(s.running)
	s.seat = &seat{seatCtx, end}
	asked := make(chan struct{})
	s.seated.Go(func() { s.watchSeat(seatCtx, end, asked) })
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	release := context.AfterFunc(seatCtx, func() { stop(context.Cause(seatCtx)) })
	defer release()
	if err := s.startEtcd(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if damage := etcd.Differs(ctx, s.member); damage != nil {
		return errors.Join(damage, listener.Close())
	}
	if err := s.insist(ctx, func(ctx context.Context) error { return updatePeerURL(ctx, s) }); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := s.startAPI(ctx, listener); err != nil {
		return err
	}
	if err := s.insist(ctx, func(ctx context.Context) error { return s.api.Install(ctx, s.member.Voters() == 1) }); err != nil {
		return err
	}
	s.seated.Go(func() { s.revoked.Run(seatCtx) })
	s.seated.Go(func() { s.lost.Run(seatCtx) })
	s.seated.Go(func() { s.followRotation(seatCtx) })
	if err := s.orFailure(ctx, s.member.Failed(), s.revoked.WaitSynced); err != nil {
		return err
	}
	if err := s.insist(ctx, s.present); err != nil {
		return err
	}
	// Nobody is served, and nobody leads, by data of an earlier life: the others were asked first, if they can be reached.
	select {
	case <-asked:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if seatCtx.Err() != nil {
		return context.Cause(seatCtx)
	}
	s.api.Open()
	if err := errors.Join(s.setSeat(seatHeld, s.settings.Existing), damaged.Mended(string(s.dir))); err != nil {
		return err
	}
	s.damage = nil
	s.seated.Go(func() { s.keepBackups(seatCtx, s.backupEvery, s.takeBackup) })
	s.seated.Go(func() { s.quorum.run(seatCtx) })
	s.changeSeat(seatCtx)
	return nil
}

// leave stops what a seat runs, in order: first the API, so that no request is cut off, then etcd.
func (s *Server) leave() {
	s.changeSeat(nil) //nolint:staticcheck // no context: the seat is not held
	if s.seat != nil {
		s.seat.end(errUnseated)
		etcd.Settle(s.abandoned, s.seated.Wait)
	}
	if s.stopAPI != nil {
		s.stopAPI()
		if err := <-s.apiDone; err != nil {
			s.log.Warn("the API server did not end in order", "error", err)
		}
	}
	switch {
	case s.member == nil:
	case s.abandoned:
		s.member.Abandon()
	default:
		s.member.Stop()
	}
	s.memberMu.Lock()
	defer s.memberMu.Unlock()
	s.member, s.api, s.stopAPI, s.seat, s.abandoned = nil, nil, nil, nil, false
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

// writeStandbyAdmin has the administrator's kubeconfig name another server, until one of them answers; see adminOver.
func (s *Server) writeStandbyAdmin() error {
	for _, server := range s.host.Addresses() {
		if server != s.Endpoint() {
			return s.identity.writeAdmin(server, time.Now())
		}
	}
	return nil
}

// changeSeat tells those who wait that the seat is held (until ctx ends), or is not.
func (s *Server) changeSeat(ctx context.Context) {
	s.memberMu.Lock()
	defer s.memberMu.Unlock()
	s.holding = ctx
	close(s.changed)
	s.changed = make(chan struct{})
}

// WhileSeated runs f each time that the server holds a seat, until ctx ends or f returns an error while the seat is held. The
// context that f gets ends with the seat.
func (s *Server) WhileSeated(ctx context.Context, f func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		s.memberMu.Lock()
		holding, changed := s.holding, s.changed
		s.memberMu.Unlock()
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
	if s.host != nil {
		return s.writeStandbyAdmin()
	}
	host, err := endpoints.Open(s.dir.host())
	if err != nil {
		return fmt.Errorf("%w; %s", err, cureOwn)
	}
	s.useHost(host)
	return s.writeStandbyAdmin()
}
