package action

import (
	"log/slog"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// DaemonLog is the kind of Actions that read the log of a daemon; package logaction has more of it.
const DaemonLog = "daemon.log"

// Quiet says whether an Action is none that users follow: a command of a cluster's plan, or a look
// into a log. Such an action changes nothing by itself, so that it is in no view, emits no events,
// wakes no cluster, and is in nobody's way.
func Quiet(a *api.Action) bool { return a.Spec.Kind == api.ActionServiceCommand || IsLog(a) }

// IsLog says whether an Action reads a log. Nobody has to approve that.
func IsLog(a *api.Action) bool { return a.Spec.Kind == DaemonLog }

// LevelOf is at which level the end of an Action is logged: whoever follows a log makes one after
// the other.
func LevelOf(a *api.Action) slog.Level {
	if IsLog(a) {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
