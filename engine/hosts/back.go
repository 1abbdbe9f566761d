package hosts

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// back refuses to go on with a host that was said to be gone and is heard while daemons are on it: to empty it now would be another thing than
// what was asked for. Where none is left, a heartbeat of a moment is no reason to begin anew: it is waited whether the host stays; and when the
// host was found empty none is.
func (j *job) back(step string) (wait *action.Progress, err error) {
	found := len(j.Daemons) == 0 && (step == stepNodes || step == stepDelete)
	if !saysGone(j.action) || found || dead(j.Host, true) == nil {
		return nil, nil
	}
	heard := meta.FindStatusCondition(j.Host.Status.Conditions, api.HostAgentConnected)
	hostDead := j.Waits.OrDefault().HostDead
	if len(j.Daemons) > 0 || heard == nil || time.Since(heard.LastTransitionTime.Time) > hostDead {
		return nil, j.notGone()
	}
	return &action.Progress{
		Message: fmt.Sprintf("host %s is empty", j.Host.Name), Recheck: watchful,
		WaitsFor: fmt.Sprintf("the agent of host %s, which reconnected although the host was declared gone: if it stays "+
			"connected until %s, the action ends and keeps the host; if it disconnects, the action continues",
			j.Host.Name, heard.LastTransitionTime.Add(hostDead).UTC().Format("15:04:05 MST")),
	}, nil
}

func (j *job) notGone() error {
	verb := "remove"
	if j.action.Spec.Kind == Replace && len(j.Nodes) > 0 {
		verb = "replace"
	}
	return refuse("%v. No disk was wiped. To empty the host, and wipe its disks where deletionPolicy is Wipe, run "+
		"'holdfast host %s %s' without --gone", dead(j.Host, true), verb, j.Host.Name)
}

// disksBack lets the policies of the clusters hold for the disks of a host again, if all is as it was before somebody said that it is gone. While
// it stays in mode Drain, and when StorageNodes were moved or deleted, its clusters still take away what is on it: then nothing is wiped before
// somebody names a plan for that.
func (j *job) disksBack(h *api.Host) string {
	switch {
	case !saysGone(j.action):
		return ""
	case h.ModeOf() != api.HostDrain && !j.begun(stepMove, stepNodes):
		engine.KeepDisks(h, false)
		return ""
	}
	return fmt.Sprintf("; its disks are kept until 'holdfast host drain %s' or 'holdfast host remove %s' without --gone",
		h.Name, h.Name)
}

// begun says whether one of the steps of the action was begun.
func (j *job) begun(steps ...string) bool {
	return slices.ContainsFunc(j.action.Status.Steps, func(s api.ActionStep) bool {
		return slices.Contains(steps, s.Name) && s.State != api.StepPending
	})
}
