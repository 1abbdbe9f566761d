package v1alpha1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetStanding_unseen: the API takes no condition with a generation below zero, which a status has that nobody wrote yet.
func TestSetStanding_unseen(t *testing.T) {
	var conditions []metav1.Condition
	SetStanding(&conditions, -1, Standing{Reason: ReasonNotReady, Message: "it waits"}, time.Now())
	for _, c := range conditions {
		if c.ObservedGeneration != 0 {
			t.Errorf("%+v", c)
		}
	}
}
