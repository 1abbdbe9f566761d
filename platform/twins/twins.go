// Package twins tells by the renewals of a Lease whether several machines run as one host. It is pure.
package twins

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/holdfast-storage/holdfast/internal/instance"
)

const (
	// For is how long an agent counts as alive after it renewed the Lease: some beats, as for agents
	// themselves.
	For = 15 * time.Second
	// most bounds how many instances of one host are remembered: a host writes them.
	most = 8
)

// sighting is when an instance renewed the Lease first and last, by this server's clock.
type sighting struct {
	instance.Instance
	first, last time.Time
}

// Sightings are those of one host, in no order.
type Sightings []sighting

// Add notes a renewal. It returns a new list: others may read the old one.
func (s Sightings) Add(lease *coordinationv1.Lease, now time.Time) Sightings {
	is, ok := instance.Of(lease.Annotations)
	if !ok {
		return s
	}
	first := now
	var kept Sightings
	for _, x := range s {
		switch {
		case x.Process == is.Process:
			first = x.first
		case now.Sub(x.last) < For:
			kept = append(kept, x)
		}
	}
	kept = kept[max(0, len(kept)-most+1):]
	return append(kept, sighting{is, first, now})
}

// Together are the instances that live side by side: each renewed the Lease after another one had
// begun to. An agent that was started again, or whose machine was booted or replaced, never comes
// back.
func (s Sightings) Together(now time.Time) []instance.Instance {
	var all []instance.Instance
	for i, x := range s {
		if now.Sub(x.last) < For && slices.ContainsFunc(s, func(y sighting) bool {
			return y.Process != s[i].Process && now.Sub(y.last) < For && y.first.Before(x.last) && x.first.Before(y.last)
		}) {
			all = append(all, x.Instance)
		}
	}
	return all
}
