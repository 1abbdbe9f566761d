package kstatus

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestSet_unseen: the API takes no condition with a generation below zero, which a status
// has that nobody wrote yet.
func TestSet_unseen(t *testing.T) {
	var conditions []metav1.Condition
	Set(&conditions, -1, Standing{Reason: api.ReasonNotReady, Message: "it waits"}, time.Now())
	for _, c := range conditions {
		if c.ObservedGeneration != 0 {
			t.Errorf("%+v", c)
		}
	}
}
