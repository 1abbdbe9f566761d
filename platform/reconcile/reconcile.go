// Package reconcile runs a function that reconciles, once at the start, after each change of watched objects
// that matters, again when it failed, and from time to time. Changes that come together cause one run.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/internal/backoff"
)

const (
	// gather is how long changes are gathered before a run, and retryAfter how soon a run that failed is
	// repeated.
	gather     = 50 * time.Millisecond
	retryAfter = 2 * time.Second
	// runTimeout bounds one run with its writes, and syncTimeout the first filling of the caches.
	runTimeout  = time.Minute
	syncTimeout = time.Minute
)

// Config says what is watched, and what is done.
type Config struct {
	// What is what the runs do, in the words of the log.
	What string
	// Cache has the objects, and Kinds are those whose changes matter.
	Cache cache.Cache
	Kinds []client.Object
	// Matters says whether a change of an object can change what a run writes.
	Matters func(was, is any) bool
	// Reconcile brings everything to what it should be, and returns how soon the next run follows where
	// nothing changes.
	Reconcile func(ctx context.Context) (time.Duration, error)
	Log       *slog.Logger
}

// Unwatched logs why a kind cannot be watched, such as a right that the operator lacks. The watch
// is tried again. It is the DefaultWatchErrorHandler of a cache.
func Unwatched(log *slog.Logger) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		if ctx.Err() == nil && apierrors.IsForbidden(err) {
			log.Warn("watching; trying again", "kind", r.TypeDescription(), "error", err)
		}
	}
}

// Run reconciles until ctx ends.
func Run(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	defer func() {
		cancel()
		<-ended
	}()
	changed := make(chan struct{}, 1) // it has room for one word
	if err := c.watch(ctx, changed); err != nil {
		ended <- nil
		return err
	}
	go func() { ended <- c.Cache.Start(ctx) }()
	filling, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	if !c.Cache.WaitForCacheSync(filling) && ctx.Err() == nil {
		return fmt.Errorf("while filling the caches for %s: %w", c.What, context.Cause(filling))
	}
	c.follow(ctx, changed)
	return nil
}

// watch has each change that matters cause a run.
func (c Config) watch(ctx context.Context, changed chan<- struct{}) error {
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, kind := range c.Kinds {
		informer, err := c.Cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("while watching %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, DeleteFunc: func(any) { wake() },
			UpdateFunc: func(was, is any) {
				if c.Matters(was, is) {
					wake()
				}
			},
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("while watching %T: %w", kind, err)
		}
	}
	return nil
}

// follow reconciles whenever something changed, until ctx ends.
func (c Config) follow(ctx context.Context, changed <-chan struct{}) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if !backoff.Wait(ctx, gather) {
				return
			}
			select {
			case <-changed: // the run that follows sees it
			default:
			}
		case <-again.C:
		}
		again.Reset(c.once(ctx))
	}
}

// once reconciles, and returns how soon to do so again.
func (c Config) once(parent context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(parent, runTimeout)
	defer cancel()
	wait, err := c.Reconcile(ctx)
	if err != nil && parent.Err() == nil {
		c.Log.Warn(c.What+"; trying again", "error", err)
		return retryAfter
	}
	return wait
}
