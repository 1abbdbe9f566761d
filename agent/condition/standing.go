// Package condition says how a daemon is by what its agent found and what the storage system says of it. It is pure.
package condition

import (
	"cmp"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Of says how a daemon is that has this status. A process that runs is not ready while the storage system gets nothing
// from it.
func Of(d *api.Daemon, s *api.DaemonStatus) kstatus.Standing {
	is := kstatus.Standing{Message: cmp.Or(s.Message, "it is "+string(s.State))}
	switch {
	case d.DeletionTimestamp != nil:
		is.Reason, is.Stalled = api.ReasonDeleting, s.State == api.DaemonFailed
	case s.State == d.Spec.State.Reached():
		is = serving(d, s)
	case s.State == api.DaemonFailed:
		is.Reason, is.Stalled = api.ReasonDaemonFailing, true
	case s.State == api.DaemonBackOff:
		is.Reason = api.ReasonDaemonFailing
		if s.LastExit != nil && s.LastExit.Cause != "" {
			is.Reason = s.LastExit.Cause
		}
	case s.State == api.DaemonStopping:
		is.Reason = api.ReasonStopping
	case d.Spec.State == api.WantWatched:
		is.Reason, is.Stalled = api.ReasonNotManaged, true
	default:
		is.Reason = api.ReasonStarting
	}
	return is
}

// Faulty says how a daemon is that could not be brought to its newest spec: it is not
// ready, though its process may go on. waits is set where what is missing comes by itself.
func Faulty(d *api.Daemon, s *api.DaemonStatus, waits bool) kstatus.Standing {
	if d.DeletionTimestamp == nil && s.State == d.Spec.State.Reached() {
		return kstatus.Standing{Stalled: !waits, Reason: api.ReasonDaemonFailing, Message: s.Message}
	}
	return Of(d, s)
}

// serving says how a daemon is that is as its spec has it.
func serving(d *api.Daemon, s *api.DaemonStatus) kstatus.Standing {
	says := d.Status.Service
	switch {
	case says == nil || s.State != api.DaemonRunning:
		return kstatus.Standing{Ready: true, Reason: api.ReasonReady}
	case says.State != api.OutOfService:
		return kstatus.Standing{Ready: true, Reason: says.Reason, Message: says.Message}
	}
	return kstatus.Standing{Stalled: says.Reason.NeedsPerson(), Reason: says.Reason, Message: says.Message}
}
