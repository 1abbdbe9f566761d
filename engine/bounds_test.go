package engine

import (
	"fmt"
	"strconv"
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

// Where decisions are left out, refusals are kept, and then what is waited for.
func TestBoundDecisions_refusalsFirst(t *testing.T) {
	report := &api.OrchestrationReport{}
	for _, v := range []api.Verdict{api.VerdictDo, api.VerdictWait, api.VerdictSkip, api.VerdictRefuse} {
		for n := range maxDecisions / 3 {
			report.Decisions = append(report.Decisions, api.Decision{Object: fmt.Sprint(n), Verdict: v, Message: "m"})
		}
	}
	boundDecisions(report)
	count, last := map[api.Verdict]int{}, -1
	for i, d := range report.Decisions {
		count[d.Verdict]++
		if n, _ := strconv.Atoi(d.Object); d.Verdict == api.VerdictRefuse {
			if i != n {
				t.Errorf("refusal %d has the place %d", n, i)
			}
			last = n
		}
	}
	if n := maxDecisions / 3; last != n-1 || count[api.VerdictWait] != n || report.Decisions[maxDecisions-1].Object != ReportObject {
		t.Errorf("the last refusal is %d; %v", last, count)
	}
}
