package hosts

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// back refuses to go on with a host that was said to be gone and is heard while daemons are left on it: to empty it now would be another
// thing than what was asked for. When the last of them was let go there is nothing to take back, and a heartbeat at that moment is no reason.
func (j *job) back() error {
	if !saysGone(j.action) || len(j.Daemons) == 0 {
		return nil
	}
	err := dead(j.Host, true)
	if err == nil {
		return nil
	}
	verb := "remove"
	if j.action.Spec.Kind == Replace && len(j.Nodes) > 0 {
		verb = "replace"
	}
	return refuse("%v. None of its disks is wiped for this; to empty it, with its disks wiped where deletionPolicy is Wipe, run 'holdfast host %s %s' without --gone",
		err, verb, j.Host.Name)
}

// disksBack lets the policies of the clusters hold for the disks of a host again, if all is as it was before somebody said that it is gone. While
// it stays in mode Drain, and when StorageNodes were moved or deleted, its clusters still take away what is on it: then nothing is wiped before
// somebody names a plan for that.
func (j *job) disksBack(h *api.Host) string {
	switch {
	case !saysGone(j.action):
		return ""
	case h.ModeOf() != api.HostDrain && !j.begun("move-nodes", "delete-nodes"):
		engine.KeepDisks(h, false)
		return ""
	}
	return fmt.Sprintf("; whatever is removed from it, its disks are kept, until 'holdfast host drain %s' or 'holdfast host remove %s' without --gone", h.Name, h.Name)
}

// begun says whether one of the steps of the action was begun.
func (j *job) begun(steps ...string) bool {
	return slices.ContainsFunc(j.action.Status.Steps, func(s api.ActionStep) bool {
		return slices.Contains(steps, s.Name) && s.State != api.StepPending
	})
}
