package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A run that failed is repeated soon, one where nothing changed late, and changes that come together cause one run.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin, fails := time.Now(), true
		var runs []time.Duration
		c := Config{Log: slog.New(slog.DiscardHandler), Reconcile: func(context.Context) (time.Duration, error) {
			runs = append(runs, time.Since(begin))
			if fails {
				fails = false
				return time.Hour, errors.New("the API does not answer")
			}
			return time.Hour, nil
		}}
		changed, done := make(chan struct{}, 1), make(chan struct{})
		go func() {
			c.follow(ctx, changed)
			close(done)
		}()
		time.Sleep(time.Minute) // of the bubble's clock
		changed <- struct{}{}
		time.Sleep(gather / 2)
		changed <- struct{}{}
		time.Sleep(gather)
		synctest.Wait()
		changedAt := time.Minute + gather
		want := []time.Duration{0, retryAfter, changedAt, changedAt + time.Hour}
		time.Sleep(time.Hour + time.Minute)
		cancel()
		<-done
		if !slices.Equal(runs, want) {
			t.Errorf("runs after %v, want %v", runs, want)
		}
	})
}
