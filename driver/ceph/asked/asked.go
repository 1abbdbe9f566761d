// Package asked reads what a person asks of a daemon by its annotations. It is pure.
package asked

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Leave says why a daemon leaves its place, where a person asked for that; empty where nobody did, or
// where the mode of its host decides.
func Leave(d *api.Daemon, host *api.Host) string {
	if d == nil || d.Annotations[api.AnnotationLeave] == "" || host.ModeOf() != api.HostActive {
		return ""
	}
	return fmt.Sprintf("a user asked it to leave host %s", d.Spec.Host)
}

// Stays says why a daemon that a person asked to leave cannot do so, by its type; none where it can.
// Movable are the types of daemons that another one can replace.
func Stays(d *api.Daemon, movable []string) (none engine.Objection) {
	if d.Annotations[api.AnnotationLeave] == "" || d.DeletionTimestamp != nil || slices.Contains(movable, d.Spec.Type) {
		return none
	}
	instead := "delete what declares it"
	if strings.HasSuffix(d.Spec.Type, "-osd") {
		instead = "list its device in spec.exclude of its StorageNode or DriveGroup, so that its data moves first"
	}
	return engine.Objection{
		Verdict: api.VerdictSkip, Reason: api.ReasonUnsupported,
		Message: fmt.Sprintf("a user asked it to leave (%s), but no other daemon takes its place: %s",
			api.AnnotationLeave, instead),
	}
}

// Value is the value of api.AnnotationStop.
func Value(now time.Time, who string) string {
	return strings.TrimSpace(now.UTC().Format(time.RFC3339) + " " + who)
}

// Stopped says whether a person has a daemon stay stopped. What Holdfast does not start it does not stop.
func Stopped(d *api.Daemon) bool {
	return d != nil && d.Annotations[api.AnnotationStop] != "" && d.DeletionTimestamp == nil &&
		(d.Spec.State == api.WantRunning || d.Spec.State == api.WantStopped)
}

// StopText says who has a daemon stay stopped, and how it is started.
func StopText(d *api.Daemon) string {
	since, who, _ := strings.Cut(d.Annotations[api.AnnotationStop], " ")
	return fmt.Sprintf("stopped by request of %s since %s; to start it, run 'holdfast daemon start %s'",
		cmp.Or(who, "a user"), since, d.Name)
}

// RestartValue is the value of api.AnnotationRestart that asks for another process of a daemon.
func RestartValue(d *api.Daemon, by types.UID) string { return startedText(d) + " " + string(by) }

// Restart says whether the process of a daemon has to be replaced because a person asked for that.
func Restart(d *api.Daemon) bool {
	started, _, asked := strings.Cut(d.Annotations[api.AnnotationRestart], " ")
	runs := d.Status.State == api.DaemonRunning || d.Status.State == api.DaemonStopping
	return asked && runs && started == startedText(d)
}

// Restarted says whether the process that a person asked to have replaced is gone, and another one runs.
func Restarted(d *api.Daemon) bool {
	started, _, asked := strings.Cut(d.Annotations[api.AnnotationRestart], " ")
	return asked && d.Status.State == api.DaemonRunning && started != startedText(d)
}

// RestartBy says whether an Action asked for the replacement of a daemon's process, done or not.
func RestartBy(d *api.Daemon, by types.UID) bool {
	_, who, _ := strings.Cut(d.Annotations[api.AnnotationRestart], " ")
	return who == string(by)
}

// startedText is when the process of a daemon was started, by the clock of its host.
func startedText(d *api.Daemon) string {
	if d.Status.Started == nil {
		return "never"
	}
	return d.Status.Started.UTC().Format(time.RFC3339Nano)
}
