// Package closed says which devices and directories of a node take no new bricks. It is pure.
package closed

import (
	"fmt"
	"slices"
	"strings"
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

// unknown says of an entry that it names nothing of the node. It closes nothing, and keeps the node
// from nothing: a device that is taken out of the node may have its entry still.
func unknown(r engine.ResolvedNode) func(entry string) bool {
	return func(entry string) bool {
		return entry != all && !slices.Contains(r.Node.Spec.Devices, entry) &&
			!slices.Contains(r.Node.Spec.Directories, entry) &&
			!slices.ContainsFunc(r.Devices, func(d engine.ResolvedDevice) bool { return d.ID == entry })
	}
}

// Text says that a node takes no new bricks, or none at some places; empty where it takes them
// everywhere.
func Text(r engine.ResolvedNode) string {
	names := slices.DeleteFunc(slices.Clone(entries(r.Node)), unknown(r))
	if len(names) == 0 {
		return ""
	}
	where := "on " + words.Few(names)
	if slices.Contains(names, all) {
		where = "anywhere"
	}
	return fmt.Sprintf("takes no new bricks %s: spec.glusterfs.closed of StorageNode %s says so; remove the entry "+
		"to open it again",
		where, r.Node.Name)
}

// unknownText names the entries that name nothing of the node; empty where there are none.
func unknownText(r engine.ResolvedNode) string {
	names := slices.Clone(entries(r.Node))
	names = slices.DeleteFunc(names, func(entry string) bool { return !unknown(r)(entry) })
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.glusterfs.closed names %s, which is neither a device nor a directory of the node: "+
		"write it as in spec.devices or spec.directories, or remove it", words.Few(names))
}

// condition is the one of a node, and false where it has none.
func condition(r engine.ResolvedNode) (metav1.Condition, bool) {
	text, wrong := Text(r), unknownText(r)
	c := metav1.Condition{Type: api.NodeTakesBricks, Status: metav1.ConditionFalse, Reason: string(api.ReasonClosed)}
	if text == "" {
		c.Status, c.Reason = metav1.ConditionTrue, string(api.ReasonInvalidSpec)
	}
	c.Message = strings.Trim(text+"; "+wrong, "; ")
	return c, c.Message != ""
}

// Tell says it in a plan: in a decision, and in a condition of the node, which is absent while
// nothing of the node is closed, and True while no entry closes anything.
func Tell(p *engine.Plan, r engine.ResolvedNode, now time.Time) {
	n := r.Node
	if n == nil {
		return
	}
	i := slices.IndexFunc(p.Nodes, func(s engine.NodeStatus) bool { return s.Name == n.Name })
	status := *n.Status.DeepCopy()
	if i >= 0 {
		status = p.Nodes[i].Status
	}
	conditions := slices.Clone(status.Conditions)
	if c, is := condition(r); !is {
		meta.RemoveStatusCondition(&conditions, api.NodeTakesBricks)
	} else {
		p.Decide(api.VerdictSkip, api.Reason(c.Reason), engine.NodeObject(n.Name), "%s", c.Message)
		c.ObservedGeneration, c.LastTransitionTime = n.Generation, metav1.NewTime(now.Truncate(time.Second))
		meta.SetStatusCondition(&conditions, c)
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
