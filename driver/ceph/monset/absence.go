package monset

import (
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// Absence is what one look at Ceph and at a mon's host finds of the mon.
type Absence struct {
	// Asked is set where Ceph has a quorum to ask.
	Asked bool
	// Out is set while the mon is not in the quorum, and Unreported while the agent of its host is
	// disconnected.
	Out, Unreported bool
}

// Note records on a mon that is wanted since when it is away without a break: out of the quorum, on
// a host whose agent is disconnected. While Ceph cannot be asked, the record stays. have is the
// mon's Daemon; nil for a new one.
func (a Absence) Note(want, have *api.Daemon, now time.Time) {
	since := ""
	if have != nil {
		since = memory.Of(have, memory.AwaySince)
	}
	switch {
	case !a.Unreported || a.Asked && !a.Out:
		since = ""
	case a.Asked && since == "":
		since = now.UTC().Format(time.RFC3339)
	}
	memory.Set(want, memory.AwaySince, since)
}

// AwayFor is how long a mon is away by what is recorded; zero for one of which nothing is.
func AwayFor(d *api.Daemon, now time.Time) time.Duration {
	if d == nil {
		return 0
	}
	since, err := time.Parse(time.RFC3339, memory.Of(d, memory.AwaySince))
	if err != nil {
		return 0
	}
	return now.Sub(since)
}
