// Package closed says which devices and directories of a node take no new bricks. It is pure.
package closed

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// all is the entry that closes the whole node.
const all = "*"

func entries(n *api.StorageNode) []string {
	if n == nil || n.Spec.GlusterFS == nil {
		return nil
	}
	return n.Spec.GlusterFS.Closed
}

// Store says whether a store takes no new bricks, by its device's identity or, where it has none,
// by its directory.
func Store(r engine.ResolvedNode, device, directory string) bool {
	return slices.ContainsFunc(entries(r.Node), func(entry string) bool {
		return entry == all || device == "" && entry == directory || device != "" && names(r, entry, device)
	})
}

func names(r engine.ResolvedNode, entry, device string) bool {
	return entry == device || slices.ContainsFunc(r.Devices, func(d engine.ResolvedDevice) bool {
		return d.Name == entry && d.ID == device
	})
}

// Unknown are the entries that name nothing of the node.
func Unknown(r engine.ResolvedNode) (unknown []string) {
	for _, entry := range entries(r.Node) {
		known := entry == all || slices.Contains(r.Node.Spec.Devices, entry) ||
			slices.Contains(r.Node.Spec.Directories, entry) ||
			slices.ContainsFunc(r.Devices, func(d engine.ResolvedDevice) bool { return d.ID == entry })
		if !known {
			unknown = append(unknown, entry)
		}
	}
	return unknown
}

// Text says that a node takes no new bricks, or none at some places; empty where it takes them
// everywhere.
func Text(n *api.StorageNode) string {
	names := entries(n)
	if len(names) == 0 {
		return ""
	}
	where := "on " + words.Few(names)
	if slices.Contains(names, all) {
		where = "anywhere"
	}
	return fmt.Sprintf("takes no new bricks %s: spec.glusterfs.closed of StorageNode %s says so; remove the entry "+
		"to open it again",
		where, n.Name)
}

// Tell says it in a plan: in a decision, and in a condition of the node, which is absent while all
// of the node is open.
func Tell(p *engine.Plan, n *api.StorageNode, now time.Time) {
	if n == nil {
		return
	}
	i := slices.IndexFunc(p.Nodes, func(s engine.NodeStatus) bool { return s.Name == n.Name })
	status := *n.Status.DeepCopy()
	if i >= 0 {
		status = p.Nodes[i].Status
	}
	conditions := slices.Clone(status.Conditions)
	if text := Text(n); text == "" {
		meta.RemoveStatusCondition(&conditions, api.NodeTakesBricks)
	} else {
		p.Decide(api.VerdictSkip, api.ReasonClosed, engine.NodeObject(n.Name), "%s", text)
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: api.NodeTakesBricks, Status: metav1.ConditionFalse, Reason: string(api.ReasonClosed), Message: text,
			ObservedGeneration: n.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	switch {
	case equality.Semantic.DeepEqual(conditions, status.Conditions):
	case i >= 0:
		p.Nodes[i].Status.Conditions = conditions
	default:
		status.Conditions = conditions
		p.Nodes = append(p.Nodes, engine.NodeStatus{Name: n.Name, Status: status})
	}
}
