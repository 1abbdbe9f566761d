package runtime

import (
	"math/rand/v2"
	"time"
)

// BackOff says how long to wait before a process that ended is started again: First after its first
// end, then Min, doubled at each end that follows, up to Max. What is counted are ends in a row of
// a process that does not stay: one that has run for Reset counts from the beginning, and so does
// one that ended with its agent or its machine, as when the power fails or somebody kills
// everything, which says nothing about the process. The pause stands in no file, so that a new
// agent starts at once what it finds ended.
type BackOff struct {
	First, Min, Max, Reset time.Duration
}

// DefaultBackOff restarts once at once, then after 1 s up to a minute. As Reset is no less than
// Max, no process is started more often than once a minute in the long run, however long it runs
// each time.
var DefaultBackOff = BackOff{
	First: 50 * time.Millisecond, Min: time.Second, Max: time.Minute, Reset: time.Minute,
}

// Delay is the pause before the start that follows the given number of ends in a row. Jitter of up
// to a fifth keeps the daemons of many hosts from coming back in step.
func (b BackOff) Delay(ends int) time.Duration {
	d := b.First
	if ends > 1 {
		d = b.Min
		for range ends - 2 {
			d = min(2*d, b.Max)
		}
	}
	return d + rand.N(d/5+1)
}
