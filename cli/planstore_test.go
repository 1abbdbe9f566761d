package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestMarkPlan: a mark leaves alone what this program does not know of a plan, and overwrites
// nothing that was written since.
func TestMarkPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "marked")
	plan := &api.Plan{}
	key := client.ObjectKey{Namespace: "marked", Name: p.planned(t, askedPool)}
	read := func() {
		t.Helper()
		if err := p.Get(t.Context(), key, plan); err != nil {
			t.Fatal(err)
		}
	}
	read()
	unknowing, late := plan.DeepCopy(), plan.DeepCopy()
	unknowing.Status.Proposal, unknowing.Spec.FieldManager = nil, ""
	if err := markPlan(t.Context(), p.Client, unknowing, api.PlanApplying, "being applied"); err != nil {
		t.Fatal(err)
	}
	first := plan.Status.Proposal.Digest
	read()
	if plan.Status.State != api.PlanApplying || plan.Status.Proposal == nil || plan.Status.Proposal.Digest != first {
		t.Errorf("after the mark it is %+v", plan.Status)
	}
	err := markPlan(t.Context(), p.Client, late, api.PlanStale, "late")
	var coded *exitError
	if !errors.As(err, &coded) || coded.code != exitRefused ||
		!strings.Contains(err.Error(), "is being applied by another user") {
		t.Errorf("a late mark: %v", err)
	}
	if err := markPlan(t.Context(), p.Client, unknowing, api.PlanApplied, "done"); err != nil {
		t.Errorf("the next mark of who marked it: %v", err)
	}
}

// TestPlan_tooLarge: what has no room in a plan is refused before anything is sent.
func TestPlan_tooLarge(t *testing.T) {
	t.Parallel()
	p := newHome(t, "toolarge")
	pools := func(n int, note string) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\n"+
				"metadata: {name: p%d, annotations: {a: '%s'}}\nspec: {cluster: c}\n", i, note)
		}
		return all.String()
	}
	for _, command := range []string{"plan -f -", "apply -f -", "apply -f - --when-possible"} {
		p.must(t, exitRefused, pools(5, strings.Repeat("a", 220<<10)), strings.Fields(command),
			"nothing was changed: the manifest has 1101 KiB, and a plan has room for 1024 KiB: name fewer objects at a time")
	}
	p.must(t, exitRefused, pools(2, strings.Repeat("<", 120<<10)), []string{"plan", "-f", "-"},
		"nothing was changed: the manifest has 1441 KiB, and a plan has room for 1126 KiB")
	secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s%d}\nstringData: {a: '%s'}\n"
	half := strings.Repeat("a", 600<<10)
	p.must(t, exitRefused, fmt.Sprintf(secret, 1, half)+fmt.Sprintf(secret, 2, half), []string{"apply", "-f", "-"},
		"nothing was changed: the Secrets have 1201 KiB, and a plan has room for 1024 KiB: name fewer Secrets at a time")
	if n := p.plans(t); n > 0 {
		t.Errorf("%d plans are there", n)
	}
}
