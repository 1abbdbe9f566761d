package absence

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ReturnedSince says since when the agent of a host is connected again; ok is false while it is
// disconnected, or if it always was connected. A message of True is HostAgentReturned of some
// version.
func ReturnedSince(h *api.Host) (since time.Time, ok bool) {
	c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
	if c == nil || c.Status != metav1.ConditionTrue || c.Message == "" {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// Unsteady says whether the agent of a host is disconnected, or was less than a time ago. A host
// that does not exist is steady.
func Unsteady(h *api.Host, now time.Time, after time.Duration) bool {
	if h == nil {
		return false
	}
	since, returned := ReturnedSince(h)
	return !h.AgentHeard() || returned && now.Sub(since) < after
}
