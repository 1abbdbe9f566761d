package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/apiserver"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/members"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/quorumlost"
)

// seat is what a server runs while it takes and holds a member of etcd: the member, the API, and
// what works beside them. Start or the goroutine that serves makes it, and leave stops it, once.
// current and quorumStatus may be called at any time.
type seat struct {
	server *Server
	ctx    context.Context //nolint:containedctx // it is what a seat is: the time for which it is held
	end    context.CancelCauseFunc
	// running are the goroutines that end with ctx.
	running sync.WaitGroup

	api     *apiserver.Server
	revoked *access.Revocation
	lost    *quorumlost.Watcher
	stopAPI context.CancelFunc
	apiDone chan error
	// abandoned is set when the member failed, so that nothing waits for it.
	abandoned bool

	// mu guards member and quorum for those that read them from other goroutines.
	mu     sync.Mutex
	member *etcd.Member
	quorum *members.Manager
}

func newSeat(s *Server) *seat {
	ctx, end := context.WithCancelCause(s.running)
	return &seat{server: s, ctx: ctx, end: end}
}

// current is the member that runs, or nil.
func (t *seat) current() *etcd.Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.member
}

// removed says whether the members of etcd removed the one of this seat.
func (t *seat) removed() bool { return t.member != nil && t.member.Removed() }

// start starts the member and the API, and makes the server known. listener is its to close.
func (t *seat) start(ctx context.Context, listener *doors.Listener) error {
	if err := t.startEtcd(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if damage := etcd.Differs(ctx, t.member); damage != nil {
		return errors.Join(damage, listener.Close())
	}
	move := func(ctx context.Context) error { return updatePeerURL(ctx, t.server, t.member) }
	if err := t.insist(ctx, move); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := t.startAPI(ctx, listener); err != nil {
		return err
	}
	install := func(ctx context.Context) error { return t.api.Install(ctx, t.member.Voters() == 1) }
	if err := t.insist(ctx, install); err != nil {
		return err
	}
	t.running.Go(func() { t.revoked.Run(t.ctx) })
	t.running.Go(func() { t.lost.Run(t.ctx) })
	t.running.Go(func() { t.server.following.run(t.ctx) })
	if err := t.orFailure(ctx, t.member.Failed(), t.revoked.WaitSynced); err != nil {
		return err
	}
	return t.insist(ctx, t.server.present)
}

// work begins what a server does that holds its seat.
func (t *seat) work() {
	backups := t.server.backups
	t.running.Go(func() { backups.schedule(t.ctx, backups.take) })
	t.running.Go(func() { t.quorum.Run(t.ctx) })
}

// watch ends the seat when the server finds that it does not hold it any more: it was away while it
// was replaced, or while the others were restored from a backup. asked is closed after the first
// look.
func (t *seat) watch(asked chan<- struct{}) {
	first := sync.OnceFunc(func() { close(asked) })
	defer first()
	for t.ctx.Err() == nil {
		if t.server.unseated(t.ctx) {
			t.end(errUnseated)
			return
		}
		first()
		wait := doubtEvery
		if m := t.current(); m != nil && m.Problem() == nil {
			wait = checkEvery
		}
		_ = pause(t.ctx, wait)
	}
}

// hold returns when the seat is lost or cannot be held any more.
func (t *seat) hold() error {
	select {
	case err := <-t.member.Failed():
		return t.whyFailed(err)
	case err := <-t.apiDone:
		t.apiDone <- err // Who stops the API waits for it, too.
		return fmt.Errorf("the API server ended: %w", err)
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-t.server.running.Done():
		return nil
	}
}

// whyFailed tells a member that was removed from one that failed.
func (t *seat) whyFailed(err error) error {
	if t.removed() || t.server.unseated(t.server.running) {
		return errUnseated
	}
	t.abandoned = true
	return err
}

// stop ends what the seat runs, in order: first the API, so that no request is cut off, then etcd.
func (t *seat) stop() {
	t.end(errUnseated)
	etcd.Settle(t.abandoned, t.running.Wait)
	if t.stopAPI != nil {
		t.stopAPI()
		if err := <-t.apiDone; err != nil {
			t.server.log.Warn("the API server did not end in order", "error", err)
		}
	}
	switch {
	case t.member == nil:
	case t.abandoned:
		t.member.Abandon()
	default:
		t.member.Stop()
	}
}

// insist repeats a step that may be repeated for as long as it fails by what passes by itself: a
// write that is under way while etcd's leader changes is lost, and times out.
func (t *seat) insist(ctx context.Context, step func(context.Context) error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := step(ctx)
		if err == nil || !passes(err) {
			return err
		}
		t.server.log.Warn("the start is delayed; retrying", "error", err)
		select {
		case <-time.After(pause):
		case fatal := <-t.member.Failed():
			t.abandoned = true
			return fatal
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// passes says whether an error of the API may pass by itself.
func passes(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsConflict(err)
}

func (t *seat) startEtcd(ctx context.Context) error {
	s := t.server
	stop := tellWaiting(ctx, s.log, "waiting for a quorum of the servers")
	defer stop()
	s.following.etcdTrusts = pki.Fingerprints(s.identity.trust())
	member, err := etcd.Start(ctx, etcd.Config{
		Dir: s.dir.etcd(), Name: s.settings.Name, Address: s.settings.Address,
		PeerPort: s.settings.EtcdPeerPort, ClientPort: s.settings.EtcdClientPort,
		CertFile: pki.CertFile(s.dir.pki(), "etcd"), KeyFile: pki.KeyFile(s.dir.pki(), "etcd"),
		CAFile:   filepath.Join(s.dir.pki(), trustFile),
		Existing: s.settings.Existing, Log: s.log,
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.member = member
	return err
}

// tellWaiting logs what is waited for, every ten seconds until the returned function is called.
func tellWaiting(ctx context.Context, log *slog.Logger, what string) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				log.Info(what)
			}
		}
	}()
	return stop
}
