// Package stats counts what the engine does.
package stats

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Stats counts what the engine does. It may be read at any time.
type Stats struct {
	// Runs were started, Discarded met another run's lock, Failed ended by an error, or with a
	// command that failed.
	Runs, Discarded, Failed atomic.Int64
	// Running are at work now, Waiting are due and wait for a place.
	Running, Waiting atomic.Int64
	// Events were accepted by the store.
	Events atomic.Int64

	mu    sync.Mutex
	ended map[string]*Durations
}

// Outcomes of a run that leaves no report: another run holds the lock; it was cut off; the cluster is paused, or gone.
const (
	Discarded = "Discarded"
	Stopped   = "Stopped"
	Paused    = "Paused"
	Gone      = "Gone"
)

// durationBounds are the upper bounds of the buckets of Durations. A run in which nothing changes takes milliseconds,
// and one that waits for a storage system that does not answer, seconds.
var durationBounds = []time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// Durations is a histogram.
type Durations struct {
	Count uint64
	Sum   time.Duration
	// Up holds how many took no longer than its key.
	Up map[time.Duration]uint64
}

// End counts a run that has ended.
func (s *Stats) End(outcome string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = map[string]*Durations{}
	}
	d := s.ended[outcome]
	if d == nil {
		d = &Durations{Up: map[time.Duration]uint64{}}
		s.ended[outcome] = d
	}
	d.Count++
	d.Sum += took
	if outcome == string(api.OutcomeFailed) {
		s.Failed.Add(1)
	}
	for _, bound := range durationBounds {
		if took <= bound {
			d.Up[bound]++
		} else {
			d.Up[bound] += 0 // so that each histogram has all buckets
		}
	}
}

// Ended returns how long the runs took that have ended, by outcome.
func (s *Stats) Ended() map[string]Durations {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Durations{}
	for outcome, d := range s.ended {
		all[outcome] = Durations{Count: d.Count, Sum: d.Sum, Up: maps.Clone(d.Up)}
	}
	return all
}

// Outcomes lists all outcomes that Ended may have.
func Outcomes() []string {
	return slices.Sorted(slices.Values([]string{
		string(api.OutcomeChanged), string(api.OutcomeUnchanged), string(api.OutcomeWaiting), string(api.OutcomeRefused),
		string(api.OutcomeObserved), string(api.OutcomeFailed), Discarded, Stopped, Paused, Gone,
	}))
}
