package detached

import (
	"math/rand/v2"
	"time"
)

// BackOff says how long to wait before a process that ended is started again: First after its first end, then Min,
// doubled at each end that follows, up to Max. After the process has run for Reset it counts from the beginning.
type BackOff struct {
	First, Min, Max, Reset time.Duration
}

// DefaultBackOff restarts once at once, then after 1 s up to a minute.
var DefaultBackOff = BackOff{First: 50 * time.Millisecond, Min: time.Second, Max: time.Minute, Reset: 5 * time.Minute}

// delay is the pause before the start that follows the given number of ends in a row. Jitter of up to a fifth keeps the
// daemons of many hosts from coming back in step.
func (b BackOff) delay(ends int) time.Duration {
	d := b.First
	if ends > 1 {
		d = b.Min
		for range ends - 2 {
			d = min(2*d, b.Max)
		}
	}
	return d + rand.N(d/5+1)
}
