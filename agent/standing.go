package agent

import (
	"cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// daemonStanding says how a daemon is that has this status.
func daemonStanding(d *api.Daemon, s *api.DaemonStatus) api.Standing {
	is := api.Standing{Message: cmp.Or(s.Message, "it is "+string(s.State))}
	switch {
	case d.DeletionTimestamp != nil:
		is.Reason, is.Stalled = api.ReasonDeleting, s.State == api.DaemonFailed
	case s.State == d.Spec.State.Reached():
		is = api.Standing{Ready: true, Reason: api.ReasonReady}
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

// faultyStanding says how a daemon is that could not be brought to its newest spec: it is not
// ready, though its process may go on. waits is set where what is missing comes by itself.
func faultyStanding(d *api.Daemon, s *api.DaemonStatus, waits bool) api.Standing {
	is := daemonStanding(d, s)
	if is.Ready {
		return api.Standing{Stalled: !waits, Reason: api.ReasonDaemonFailing, Message: s.Message}
	}
	return is
}
