// Package looks has what follows from objects of the API be kept as it should be: each change that
// matters is followed by a look, and so is a look that failed.
package looks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// gather is how long changes are gathered before they are looked at, and retryAfter how soon a
	// look that failed is repeated.
	gather     = 50 * time.Millisecond
	retryAfter = 2 * time.Second
	// lookTimeout bounds one look with its writes, and syncTimeout the first filling of the caches.
	lookTimeout = time.Minute
	syncTimeout = time.Minute
)

// Config says what is watched, and what a look does.
type Config struct {
	// What is what the looks do, in the words of the log.
	What string
	// Cache has the objects, and Kinds are those whose changes matter.
	Cache cache.Cache
	Kinds []client.Object
	// Matters says whether a change of an object can change what a look writes.
	Matters func(was, is any) bool
	// Look brings everything to what it should be, and returns how soon the next look follows
	// in which nothing changed.
	Look func(ctx context.Context) (time.Duration, error)
	Log  *slog.Logger
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

// Run looks until ctx ends.
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

// watch has each change that matters ask for a look.
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

// follow looks whenever something changed, until ctx ends.
func (c Config) follow(ctx context.Context, changed <-chan struct{}) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if !pause(ctx, gather) {
				return
			}
		case <-again.C:
		}
		again.Reset(c.once(ctx))
	}
}

// once looks, and returns how soon to look again.
func (c Config) once(parent context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(parent, lookTimeout)
	defer cancel()
	wait, err := c.Look(ctx)
	if err != nil && parent.Err() == nil {
		c.Log.Warn(c.What+"; trying again", "error", err)
		return retryAfter
	}
	return wait
}

// pause waits, and says whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
