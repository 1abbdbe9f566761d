package store

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

const (
	// twinsFor is how long an agent counts as alive after it renewed the Lease: some beats, as for
	// agents themselves.
	twinsFor = 15 * time.Second
	// maxSightings bounds how many instances of one host are remembered: a host writes them.
	maxSightings = 8
)

// Reasons of a Host's condition SingleMachine.
const (
	ReasonTwoMachines = "TwoMachines"
	ReasonOneMachine  = "OneMachine"
)

// sighting is when an instance renewed the Lease first and last, by this server's clock.
type sighting struct {
	instance.Instance
	first, last time.Time
}

// sightings are those of one host, in no order.
type sightings []sighting

// add notes a renewal. It returns a new list: others may read the old one.
func (s sightings) add(lease *coordinationv1.Lease, now time.Time) sightings {
	is, ok := instance.Of(lease.Annotations)
	if !ok {
		return s
	}
	first := now
	var kept sightings
	for _, x := range s {
		switch {
		case x.Process == is.Process:
			first = x.first
		case now.Sub(x.last) < twinsFor:
			kept = append(kept, x)
		}
	}
	kept = kept[max(0, len(kept)-maxSightings+1):]
	return append(kept, sighting{is, first, now})
}

// together are the instances that live side by side: each renewed the Lease after another one had
// begun to. An agent that was started again, or whose machine was booted or replaced, never comes
// back.
func (s sightings) together(now time.Time) []instance.Instance {
	var all []instance.Instance
	for i, x := range s {
		if now.Sub(x.last) < twinsFor && slices.ContainsFunc(s, func(y sighting) bool {
			return y.Process != s[i].Process && now.Sub(y.last) < twinsFor && y.first.Before(x.last) && x.first.Before(y.last)
		}) {
			all = append(all, x.Instance)
		}
	}
	return all
}

// judgeTwins says what the condition SingleMachine of a host shall be; ok is false when it is right
// as it is.
func (s *Store) judgeTwins(host *api.Host, now time.Time) (want metav1.Condition, ok bool) {
	b, _ := s.beats.of(host.Name)
	all := b.instances.together(now)
	have := meta.FindStatusCondition(host.Status.Conditions, api.HostSingleMachine)
	want = metav1.Condition{Type: api.HostSingleMachine, Status: metav1.ConditionTrue, Reason: ReasonOneMachine}
	if len(all) > 0 {
		want.Status, want.Reason = metav1.ConditionFalse, ReasonTwoMachines
		want.Message = instance.Together(host.Name, all...)
	}
	switch {
	case have == nil:
		return want, len(all) > 0
	case len(all) == 0 && have.Status == metav1.ConditionFalse && now.Sub(s.beats.began) < twinsFor:
		return want, false // a new leader has not listened for long enough
	}
	return want, have.Status != want.Status || have.Message != want.Message
}
