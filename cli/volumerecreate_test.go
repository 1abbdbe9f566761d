package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Only the loss of the volume that is recorded, and known to be gone, can be accepted.
func TestCannotRecreate(t *testing.T) {
	v := &api.Volume{}
	v.Status.ID = "id-1"
	if cannotRecreate(v, "id-1") == "" {
		t.Error("a volume that is there")
	}
	v.Status.Conditions = []metav1.Condition{{Type: api.VolumePresent, Status: metav1.ConditionFalse}}
	if cannotRecreate(v, "id-2") == "" {
		t.Error("another volume")
	}
	if why := cannotRecreate(v, "id-1"); why != "" {
		t.Error(why)
	}
}
