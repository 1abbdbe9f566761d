// Package heartbeat judges by the renewals of their Leases how the agents of hosts are: whether
// they are heard, what they said at their end, and whether several machines run as one host.
package heartbeat

import (
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/platform/twins"
)

// Reasons of a Host's condition AgentConnected.
const (
	ReasonConnected = "Connected"
	ReasonSilent    = "Silent"
	// formerlyReturned is what earlier versions had as the reason instead of the message
	// HostAgentReturned. Tables would show it until the next silence.
	formerlyReturned = "HeardAgain"
)

// Beats knows when each agent was last heard, by this server's own clock: the hosts' clocks may be
// wrong. It is safe for concurrent use.
type Beats struct {
	mu    sync.Mutex
	beats map[string]beat
	now   func() time.Time
	// began is when this server began to listen.
	began time.Time
}

type beat struct {
	renewed metav1.MicroTime
	heard   time.Time
	// instances are the agents that renewed the Lease of late.
	instances twins.Sightings
	// farewell is what the agent said at its end.
	farewell absence.Farewell
	// known is set when a renewal was seen. A Lease that was there before may have been left by an
	// agent long dead.
	known bool
}

// New returns Beats that begin to listen now.
func New() *Beats {
	return &Beats{beats: map[string]beat{}, now: time.Now, began: time.Now()}
}

// Saw takes a Lease that was read: a renewal is a heartbeat, a Lease that is read again is none.
func (h *Beats) Saw(host string, lease *coordinationv1.Lease, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone {
		delete(h.beats, host)
		return
	}
	now := h.now()
	var renewed metav1.MicroTime
	if lease.Spec.RenewTime != nil {
		renewed = *lease.Spec.RenewTime
	}
	last, seen := h.beats[host]
	last.farewell = absence.Farewell(lease.Annotations[instance.Farewell])
	if !seen || !last.renewed.Equal(&renewed) {
		last.renewed, last.heard, last.known, last.instances = renewed, now, seen, last.instances.Add(lease, now)
	}
	h.beats[host] = last
}

func (h *Beats) of(host string) (beat, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.beats[host]
	return b, ok
}

// Farewell is what the agent of a host said at its end; empty where it said nothing.
func (h *Beats) Farewell(host string) absence.Farewell {
	b, _ := h.of(host)
	return b.farewell
}

// Ages says of each host whose agent was ever heard how long ago that was, by this server's
// own clock.
func (h *Beats) Ages() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	ages := make([]time.Duration, 0, len(h.beats))
	for _, b := range h.beats {
		ages = append(ages, now.Sub(b.heard))
	}
	return ages
}

// Connected says what the condition AgentConnected of a host should be; ok is false when it is
// right as it is. Started is when the leader began to look; an agent that is not heard for longer
// than silence is silent.
func (h *Beats) Connected(
	host *api.Host, started, now time.Time, silence time.Duration,
) (want metav1.Condition, ok bool) {
	b, heard := h.of(host.Name)
	have := meta.FindStatusCondition(host.Status.Conditions, api.HostAgentConnected)
	since := b.heard
	if !heard {
		// No heartbeat at all: the host may have joined this moment, or the leader may have
		// started.
		since = started
		if host.CreationTimestamp.After(since) {
			since = host.CreationTimestamp.Time
		}
	}
	want = metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionTrue, Reason: ReasonConnected}
	switch silent := now.Sub(since) > silence; {
	case silent:
		want.Status, want.Reason = metav1.ConditionFalse, ReasonSilent
		want.Message = fmt.Sprintf("no heartbeat of the agent for %s", silence)
	case have != nil && have.Status == metav1.ConditionFalse && b.known:
		want.Message = api.HostAgentReturned
	case !heard, have != nil && have.Status == metav1.ConditionFalse && !b.known:
		return want, false
	case have != nil && have.Reason == formerlyReturned:
		want.Message = api.HostAgentReturned
		return want, true
	}
	return want, have == nil || have.Status != want.Status
}
