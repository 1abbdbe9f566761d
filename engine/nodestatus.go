package engine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Reasons of the condition Accepted, of nodes and of clusters.
const (
	ReasonAccepted = "Accepted"
	// ReasonWaiting: something is not there yet and may come by itself.
	ReasonWaiting = "Waiting"
	// ReasonRefused: someone has to change something.
	ReasonRefused = "Refused"
)

// maxConditionMessage keeps a condition readable; the API server's own bound is higher.
const maxConditionMessage = 2048

// NodeStatusFor makes the status of a StorageNode from what it was resolved to and the problems
// that the driver found beside. A driver that finds fault with one device also sets Problem in
// resolved.Devices: an entry with a problem is not recorded (an identity that stands already stays
// recorded), because a record is a claim. It is pure; where nothing changed, the result equals the
// node's present status, times included.
func NodeStatusFor(resolved ResolvedNode, problems []string, now time.Time) api.StorageNodeStatus {
	node := resolved.Node
	status := *node.Status.DeepCopy()
	status.ObservedGeneration = node.Generation
	status.Devices = claimedDevices(resolved)
	if resolved.Host != nil {
		status.Host = resolved.Host.Name
	} else if len(status.Devices) == 0 {
		status.Host = ""
	}
	condition := acceptedCondition(resolved, problems)
	condition.ObservedGeneration = node.Generation
	// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
	condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	meta.SetStatusCondition(&status.Conditions, condition)
	TellUnmatched(&status.Conditions, resolved.Out.Unmatched, node.Generation, now)
	return status
}

func claimedDevices(resolved ResolvedNode) []api.ClaimedDevice {
	var claimed []api.ClaimedDevice
	for _, d := range resolved.Devices {
		if d.ID != "" && (d.Problem == "" || recordedID(resolved.Node, d.Name) != "") {
			claimed = append(claimed, api.ClaimedDevice{Name: d.Name, ID: d.ID})
		}
	}
	return append(claimed, resolved.Out.Records...)
}

// TellUnmatched says in a condition which entries of spec.exclude and spec.replace mean no device.
// It is there while there are any.
func TellUnmatched(conditions *[]metav1.Condition, unmatched []string, generation int64, now time.Time) {
	if len(unmatched) == 0 {
		meta.RemoveStatusCondition(conditions, api.ConditionEntriesMatched)
		return
	}
	c := falseCondition(api.ConditionEntriesMatched, string(api.ReasonDeviceUnavailable), unmatched)
	c.Message = words.Cut(c.Message, maxResourceMessage)
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	meta.SetStatusCondition(conditions, c)
}

func acceptedCondition(resolved ResolvedNode, problems []string) metav1.Condition {
	all := slices.Clone(resolved.Problems)
	for _, d := range resolved.Devices {
		if d.Problem != "" {
			all = append(all, d.Problem)
		}
	}
	for _, p := range problems {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	switch {
	case len(all) > 0:
		return falseCondition(api.NodeAccepted, ReasonRefused, all)
	case len(resolved.Waits) > 0:
		return falseCondition(api.NodeAccepted, ReasonWaiting, resolved.Waits)
	}
	return metav1.Condition{Type: api.NodeAccepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted}
}

func falseCondition(kind, reason string, sentences []string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason,
		Message: words.Cut(strings.Join(sentences, "; "), maxConditionMessage),
	}
}
