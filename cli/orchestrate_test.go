package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, now, done string
		report          bool
		want            bool
	}{
		{"no run since", "2", "1", true, false},
		{"no run ever", "2", "", false, false},
		{"the run of this request", "2", "2", true, true},
		{"the run of a later request", "3", "3", true, true},
		{"a later request, and no run since", "3", "1", true, false},
		{"the annotation was removed", "", "", true, false},
	} {
		c := &api.StorageCluster{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationOrchestrate: tt.now}},
			Status:     api.StorageClusterStatus{OrchestratedRequest: tt.done},
		}
		if tt.report {
			c.Status.Report = &api.OrchestrationReport{}
		}
		if got := answers(c, "2"); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
