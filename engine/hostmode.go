package engine

import (
	"encoding/json"
	"maps"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// annotationModeBefore is on a Host of which an Action set the mode, and holds a modeBefore. It is written together with the
// mode, so that whoever undoes the Action after a crash knows what to give back.
const annotationModeBefore = api.Group + "/mode-before"

// annotationKeepsDisks is on a Host of which somebody said, without naming a plan, that its machine is gone. It is written together
// with the mode, so that no run which empties the host can have missed it.
const annotationKeepsDisks = api.Group + "/keeps-disks"

type modeBefore struct {
	By     string       `json:"by"`
	Mode   api.HostMode `json:"mode"`
	Reason string       `json:"reason,omitempty"`
}

// SetHostMode puts a host into a mode, and notes on it who did that and which mode it had. A host that is in the mode already
// stays as it is.
func SetHostMode(h *api.Host, mode api.HostMode, reason, by string) {
	if h.ModeOf() == mode {
		return
	}
	before, err := json.Marshal(modeBefore{By: by, Mode: h.ModeOf(), Reason: h.Spec.Reason})
	if err != nil {
		panic(err) // three strings
	}
	h.Annotations = maps.Clone(h.Annotations)
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	h.Annotations[annotationModeBefore] = string(before)
	h.Spec.Mode, h.Spec.Reason = mode, reason
}

// RestoreHostMode gives a host the mode back that it had before SetHostMode was called with the same by. It changes nothing
// when the mode was not set by it, or somebody else set it since.
func RestoreHostMode(h *api.Host, set api.HostMode, by string) {
	var before modeBefore
	if json.Unmarshal([]byte(h.Annotations[annotationModeBefore]), &before) != nil || before.By != by || h.ModeOf() != set {
		return
	}
	h.Annotations = maps.Clone(h.Annotations)
	delete(h.Annotations, annotationModeBefore)
	h.Spec.Mode, h.Spec.Reason = before.Mode, before.Reason
}

// KeepDisks says whether the disks of a host keep what is on them whatever is removed from there, and whatever the clusters' deletion
// policies are. The machine of a host that is said to be gone may come back, and its agent would do what it is told.
func KeepDisks(h *api.Host, keep bool) {
	if keep == DisksKept(h) {
		return
	}
	h.Annotations = maps.Clone(h.Annotations)
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	if delete(h.Annotations, annotationKeepsDisks); keep {
		h.Annotations[annotationKeepsDisks] = "true"
	}
}

// DisksKept says whether KeepDisks holds for a host, which may be nil.
func DisksKept(h *api.Host) bool { return h != nil && h.Annotations[annotationKeepsDisks] != "" }

// PolicyOn is what becomes of the data of a cluster's daemons that are removed from a host, which may be nil: the cluster's policy, where
// the host's disks are not kept.
func PolicyOn(c *api.StorageCluster, h *api.Host) api.DeletionPolicy {
	if DisksKept(h) {
		return api.DeletionRetain
	}
	return c.PolicyOf()
}
