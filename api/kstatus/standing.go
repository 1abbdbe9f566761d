// Package kstatus writes the conditions that objects of all kinds have, by the rules of kstatus. It is pure.
package kstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Standing is how an object is.
type Standing struct {
	// Ready says that all is as declared.
	Ready bool
	// Stalled says that a user has to act. An object that is neither is being reconciled.
	Stalled bool
	Reason  api.Reason
	// Message says why the object is not ready, in a sentence. It may be empty only for one that is.
	Message string
}

// Set sets Ready, Reconciling and Stalled of an object with this generation. What does not change keeps its
// time. The generation of a status that nobody has written, -1, is 0 in a condition.
func Set(conditions *[]metav1.Condition, generation int64, s Standing, now time.Time) {
	generation = max(generation, 0)
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
			Type: kind, Status: status, ObservedGeneration: generation,
			LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)}, Reason: string(s.Reason), Message: s.Message,
		})
	}
	switch {
	case s.Ready:
		set(api.ConditionReady, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, api.ConditionReconciling)
		meta.RemoveStatusCondition(conditions, api.ConditionStalled)
	case s.Stalled:
		set(api.ConditionReady, metav1.ConditionFalse)
		set(api.ConditionStalled, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, api.ConditionReconciling)
	default:
		set(api.ConditionReady, metav1.ConditionFalse)
		set(api.ConditionReconciling, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, api.ConditionStalled)
	}
}
