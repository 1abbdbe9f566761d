package etcd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// ControlPlane is the name that the control plane's own events go by.
const ControlPlane = "control-plane"

// The codes of events; docs/reference/events.md explains them.
const (
	CodeAdded    = "QUORUM_MEMBER_ADDED"
	CodePromoted = "QUORUM_MEMBER_PROMOTED"
	CodeReplaced = "QUORUM_MEMBER_REPLACED"
	CodeRemoved  = "QUORUM_MEMBER_REMOVED"
	CodeDegraded = "QUORUM_DEGRADED"
	CodeHealthy  = "QUORUM_HEALTHY"
	CodeRestored = "QUORUM_RESTORED"
	CodeLeader   = "LEADER_CHANGED"
)

// Told is what the events have told so far: just so much that whoever leads etcd next can find what differs from it. It is recorded
// with each event, so that each difference is told exactly once.
type Told struct {
	// Members are the members by their ids; nil before anything was told.
	Members map[uint64]Seat `json:"members"`
	// Degraded is that of the Plan.
	Degraded string `json:"degraded,omitempty"`
	// Leader is the server that acts for all, which is not always the one whose member leads etcd; empty before anything was told of one.
	Leader string `json:"leader,omitempty"`
	// Generation is the life of the control plane that was told of.
	Generation int64 `json:"generation,omitempty"`
}

// Seat is a member, as far as events tell of it.
type Seat struct {
	Server string `json:"server"`
	Voter  bool   `json:"voter,omitempty"`
}

// Event tells one difference.
type Event struct{ Code, Object, Message string }

// Next returns the first difference between what was told and what is, and what has been told with
// it; nil when all has been told. steps are those that were tried since, as far as they are known:
// they say why. The first event of all tells how the members were before these steps: the log may
// not have been writable for some time.
func (t Told) Next(v View, p Plan, steps []Step) (*Event, Told) {
	next := t
	next.Members = maps.Clone(t.Members)
	switch {
	case v.Generation > t.Generation: // first of all: it is why the members differ
		return next.restored(v), next
	case t.Members == nil && p.Degraded == "" && !v.works():
		return nil, t // it is not known yet how they are
	case t.Members == nil:
		next.Members = seatsBefore(v, steps)
		return next.health(p), next
	}
	if event := next.removed(v, steps); event != nil {
		return event, next
	}
	if event := next.taken(v, steps); event != nil {
		return event, next
	}
	// What is bad and not confirmed, as in the first looks of a new leader, is neither degraded nor healthy.
	if p.Degraded != t.Degraded && (p.Degraded != "" || v.works()) {
		return next.health(p), next
	}
	return nil, t
}

// Leads returns the event that tells that a server acts for all now, and what has been told with it; nil when that was told.
func (t Told) Leads(server string) (*Event, Told) {
	if t.Leader == server {
		return nil, t
	}
	message := "server " + server + " leads"
	if t.Leader != "" {
		message += ", " + t.Leader + " led before"
	}
	t.Leader = server
	return &Event{CodeLeader, "leader/" + server, message}, t
}

// seatsBefore returns the members without what steps did: a member that was added since has no
// seat, and one that was promoted no vote.
func seatsBefore(v View, steps []Step) map[uint64]Seat {
	all := map[uint64]Seat{}
	for _, m := range v.Members {
		if !m.Unnamed && !tried(steps, Add, m.Name) {
			all[m.ID] = Seat{Server: m.Name, Voter: m.Voter && !tried(steps, Promote, m.Name)}
		}
	}
	return all
}

func tried(steps []Step, verb Verb, server string) bool {
	return last(steps, verb, server).Server != ""
}

// restored tells that the control plane began another life.
func (t *Told) restored(v View) *Event {
	t.Generation = v.Generation
	return &Event{CodeRestored, "cluster/" + ControlPlane, fmt.Sprintf("the control plane was restored %s: later "+
		"writes are lost, and servers of the earlier generation move their data aside",
		cmp.Or(v.Restored, fmt.Sprintf("(generation %d)", v.Generation)))}
}

// removed tells of the first member that is none any more.
func (t Told) removed(v View, steps []Step) *Event {
	there := map[uint64]bool{}
	for _, m := range v.Members {
		there[m.ID] = true
	}
	for _, id := range slices.SortedFunc(maps.Keys(t.Members), t.byServer) {
		if server := t.Members[id].Server; !there[id] {
			delete(t.Members, id)
			return &Event{CodeRemoved, "host/" + server, why(steps, Remove, server)}
		}
	}
	return nil
}

func (t Told) byServer(a, b uint64) int {
	return cmp.Or(cmp.Compare(t.Members[a].Server, t.Members[b].Server), cmp.Compare(a, b))
}

// taken tells of the first member that was added or that votes now. One that nobody knows the name of is told of when it has it.
func (t Told) taken(v View, steps []Step) *Event {
	for _, m := range v.Members {
		switch seat, known := t.Members[m.ID]; {
		case !known && !m.Unnamed:
			t.Members[m.ID] = Seat{Server: m.Name}
			return &Event{CodeAdded, "host/" + m.Name, why(steps, Add, m.Name)}
		case known && m.Voter && !seat.Voter:
			seat.Voter = true
			t.Members[m.ID] = seat
			return promoted(seat.Server, steps)
		}
	}
	return nil
}

func promoted(server string, steps []Step) *Event {
	if step := last(steps, Promote, server); step.Replaces != "" {
		return &Event{CodeReplaced, "host/" + server, "it takes the place of " + step.Replaces}
	}
	return &Event{CodePromoted, "host/" + server, "it has caught up"}
}

// why says why a step was done.
func why(steps []Step, verb Verb, server string) string {
	return cmp.Or(last(steps, verb, server).Reason,
		"cause unknown: the leader ended before it recorded the cause, or the change was made by hand or by a restore")
}

func last(steps []Step, verb Verb, server string) (step Step) {
	for _, s := range steps {
		if s.Verb == verb && s.Server == server {
			step = s
		}
	}
	return step
}

// health tells how the members are.
func (t *Told) health(p Plan) *Event {
	t.Degraded = p.Degraded
	if p.Degraded != "" {
		return &Event{CodeDegraded, "cluster/" + ControlPlane, p.Degraded + "; " + survives(p.Spare)}
	}
	return &Event{CodeHealthy, "cluster/" + ControlPlane, "all desired members of etcd answer; " + survives(p.Spare)}
}

// works says whether all members that vote do their part, by the last look at them.
func (v *View) works() bool {
	return !slices.ContainsFunc(v.Members, func(m Member) bool { return m.Voter && !m.Etcd.Good })
}

func survives(spare int) string {
	switch {
	case spare <= 0:
		return "the control plane survives no further failure"
	case spare == 1:
		return "the control plane survives one more failure"
	}
	return fmt.Sprintf("the control plane survives %d more failures", spare)
}
