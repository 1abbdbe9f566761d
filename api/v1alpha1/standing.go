package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions that objects of all kinds have, by the rules of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus): they tell tools that know
// none of the kinds how an object is.
const (
	// ConditionReady is True while the object is as its newest spec declares it, and serves.
	ConditionReady = "Ready"
	// ConditionReconciling is True while somebody works on that, or waits for something that comes by itself. Otherwise it is absent.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a user has to act. Otherwise it is absent.
	ConditionStalled = "Stalled"
)

// Standing is how an object is.
type Standing struct {
	// Ready says that all is as declared.
	Ready bool
	// Stalled says that a user has to act. An object that is neither is being reconciled.
	Stalled bool
	Reason  Reason
	// Message says why the object is not ready, in a sentence. It may be empty only for one that is.
	Message string
}

// SetStanding sets Ready, Reconciling and Stalled of an object with this generation. What does not change keeps its
// time. The generation of a status that nobody has written, -1, is 0 in a condition.
func SetStanding(conditions *[]metav1.Condition, generation int64, s Standing, now time.Time) {
	generation = max(generation, 0)
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
			Type: kind, Status: status, ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
			Reason: string(s.Reason), Message: s.Message,
		})
	}
	switch {
	case s.Ready:
		set(ConditionReady, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, ConditionReconciling)
		meta.RemoveStatusCondition(conditions, ConditionStalled)
	case s.Stalled:
		set(ConditionReady, metav1.ConditionFalse)
		set(ConditionStalled, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, ConditionReconciling)
	default:
		set(ConditionReady, metav1.ConditionFalse)
		set(ConditionReconciling, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, ConditionStalled)
	}
}
