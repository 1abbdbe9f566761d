package engine

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestBoundDecisions: whatever a plan says, and of however many objects in one decision, the report keeps to the API's schema. One
// that did not could never be written, and the run would fail each time.
func TestBoundDecisions(t *testing.T) {
	var labels []string
	for n := range 600 {
		labels = append(labels, fmt.Sprintf("osd.%d", n))
	}
	report := &api.OrchestrationReport{}
	for range maxDecisions + 10 {
		report.Decisions = append(report.Decisions, api.Decision{Object: strings.Join(labels, ", "), Message: strings.Join(labels, " and ")})
	}
	boundDecisions(report)
	if n := len(report.Decisions); n != maxDecisions {
		t.Errorf("%d decisions, and %d may be", n, maxDecisions)
	}
	for _, d := range report.Decisions {
		if len(d.Object) > maxDecisionObject || len(d.Message) > maxDecisionMessage || d.Object == "" {
			t.Fatalf("a decision has an object of %d bytes and a message of %d", len(d.Object), len(d.Message))
		}
	}
}
