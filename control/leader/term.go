package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The reasons why a term ends.
var (
	errLate  = errors.New("the lease was not renewed in time")
	errTaken = errors.New("the lease was taken by another server, or deleted")
)

// term is one time of leadership.
type term struct {
	lock  *lock
	token string
	won   func(ctx context.Context, token string) error
	log   *slog.Logger

	// lease is the Lease as this term wrote it last, and began when that write was begun. They are
	// used by one goroutine at a time.
	lease *coordinationv1.Lease
	began time.Time
}

// take writes the token into the Lease, in the place of the version that lease is.
func (t *term) take(ctx context.Context, lease *coordinationv1.Lease) (err error) {
	t.began = time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.lock.times.Deadline)
	defer cancel()
	t.lease, err = t.lock.put(ctx, taken(lease, t.token, t.lock.times.Lease))
	return err
}

// run leads until ctx ends, the lease is lost, or lead returns. The lease is renewed until lead has
// returned, also after ctx has ended: otherwise another server could act while this one still does.
// Then it is released, if it is still held.
func (t *term) run(ctx context.Context, lead Lead) {
	t.log.Info("this server leads", "term", t.token)
	held, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	acting, stop := context.WithCancelCause(held)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		t.keep(held, lose)
	}()
	if err := t.count(acting); err != nil {
		t.log.Warn("this server gives up leadership", "term", t.token, "error", err)
	} else {
		lead(acting, t.token)
	}
	if err := context.Cause(held); err != nil {
		t.log.Warn("this server does not lead any more", "term", t.token, "reason", err)
	}
	lose(nil)
	<-kept
	if err := t.release(context.WithoutCancel(ctx)); err != nil {
		t.log.Info("the lease was not released: the next leader waits until it expires", "error", err)
	}
}

// count makes the token count where the API keeps no fences.
func (t *term) count(ctx context.Context) error {
	if t.won == nil {
		return nil
	}
	return t.won(ctx, t.token)
}

// keep renews the lease until ctx ends, and calls lose, which ends ctx, when the lease is lost.
func (t *term) keep(ctx context.Context, lose context.CancelCauseFunc) {
	deadline := time.AfterFunc(t.lock.times.Deadline-time.Since(t.began), func() { lose(errLate) })
	defer deadline.Stop()
	wait := t.lock.times.Renew
	for {
		pause(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		switch err := t.renew(ctx); {
		case err == nil:
			deadline.Reset(t.lock.times.Deadline - time.Since(began))
			wait = t.lock.times.Renew
		case errors.Is(err, errTaken):
			lose(err)
			return
		default:
			t.log.Info("the lease was not renewed; trying again", "error", err)
			wait = t.lock.times.Retry
		}
	}
}

// renew writes the lease once more. That somebody wrote something else into it, such as a label, is
// no loss.
func (t *term) renew(ctx context.Context) error {
	lease, err := t.lock.put(ctx, renewed(t.lease))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if lease, err = t.lock.get(ctx); err != nil {
			return err
		}
		if holder(lease) != t.token {
			return errTaken
		}
		t.lease = lease
		lease, err = t.lock.put(ctx, renewed(lease))
	}
	if err != nil {
		return fmt.Errorf("while renewing the lease %s: %w", t.lock.name, err)
	}
	t.lease = lease
	return nil
}

// release gives up the lease, if this term holds it still.
func (t *term) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.lock.times.Deadline)
	defer cancel()
	lease, err := t.lock.get(ctx)
	if err != nil || holder(lease) != t.token {
		return err
	}
	_, err = t.lock.put(ctx, released(lease))
	return err
}
