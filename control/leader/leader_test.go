package leader

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestTerm_stopWaitsForLead: the lease may be released only when lead has returned.
func TestTerm_stopWaitsForLead(t *testing.T) {
	var returned, ended atomic.Bool
	started := make(chan struct{})
	tm := &term{
		lead: func(ctx context.Context) {
			close(started)
			<-ctx.Done()
			returned.Store(true)
		},
		end: func() {
			if !returned.Load() {
				t.Error("the contest ended before lead returned")
			}
			ended.Store(true)
		},
	}
	go tm.run(t.Context())
	<-started
	tm.stop()
	if !returned.Load() || !ended.Load() {
		t.Errorf("after stop: lead returned %v, contest ended %v, want both", returned.Load(), ended.Load())
	}
}

// TestTerm_wonTooLate: a lease that is won while the server stops is not acted on.
func TestTerm_wonTooLate(t *testing.T) {
	tm := &term{lead: func(context.Context) { t.Error("lead was called after stop") }, end: func() {}}
	tm.stop()
	tm.run(t.Context())
}

// TestTerm_leadReturns: giving up leadership ends the contest, so that another server may win.
func TestTerm_leadReturns(t *testing.T) {
	ended := make(chan struct{})
	tm := &term{lead: func(context.Context) {}, end: func() { close(ended) }}
	tm.run(t.Context())
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the contest goes on although lead returned")
	}
}
