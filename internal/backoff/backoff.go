// Package backoff says how long to pause before what failed is tried again, and pauses.
package backoff

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"
)

// A thing that fails is tried again after a pause that doubles from first to most.
const (
	first = time.Second
	most  = time.Minute
)

// Pause is the pause after so many failures of one thing in a row. Half of it is spread, so that things that fail together do
// not come back together.
func Pause(what string, failures int) time.Duration {
	d := Doubling(first, most, failures)
	return d/2 + Spread(what, failures, d/2+1)
}

// Spread is a part of a time, for each thing and each time that it is asked another one. It is no chance: what happened can be played
// again, to the nanosecond.
func Spread(what string, n int, most time.Duration) time.Duration {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", what, n) // a hash takes all that is written
	return time.Duration(h.Sum64() % uint64(most))
}

// Doubling returns first for n = 1, twice that for n = 2 and so on, and at most most.
func Doubling(first, most time.Duration, n int) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

// Wait waits, and returns false if ctx ended before.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
