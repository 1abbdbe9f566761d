// Package asked reads what a person asks of a daemon by its annotations. It is pure.
package asked

import (
	"fmt"
	"slices"
	"strings"

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
