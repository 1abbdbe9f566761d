package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Only the loss of what is recorded, and known to be gone, can be accepted.
func TestCannotRecreate(t *testing.T) {
	for _, r := range []api.Resource{&api.Volume{}, &api.Pool{}, &api.Filesystem{}, &api.ObjectStore{}, &api.Client{}} {
		if cannotRecreate(r, "id-1") == "" {
			t.Errorf("%s: one that is there", r.ResourceKind())
		}
		r.Common().Conditions = []metav1.Condition{{Type: api.ResourcePresent, Status: metav1.ConditionFalse}}
		if why := cannotRecreate(r, "id-1"); !strings.Contains(why, "not recorded yet") {
			t.Errorf("%s: no id is recorded: %q", r.ResourceKind(), why)
		}
		r.Common().Lost = "id-1"
		if cannotRecreate(r, "id-2") == "" {
			t.Errorf("%s: another one", r.ResourceKind())
		}
		if why := cannotRecreate(r, "id-1"); why != "" {
			t.Errorf("%s: %s", r.ResourceKind(), why)
		}
	}
}
