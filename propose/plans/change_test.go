package plans_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// TestUnnamedData: data is named by what it is in, whatever else is told of that; a command by its words.
func TestUnnamedData(t *testing.T) {
	remove := plans.Change{Verb: plans.VerbRemove, Object: "daemon/c-osd-1", Host: "h1", Label: "osd.1", State: api.WantRunning, Risk: api.RiskData}
	drop := plans.Change{Verb: plans.VerbCommand, Object: "osd pool delete", Label: "a", Risk: api.RiskData}
	stop := plans.Change{Verb: plans.VerbChange, Object: "daemon/c-osd-2", Host: "h1", Label: "osd.2", Risk: api.RiskRedundancy}
	var spec api.PlanProposal
	plans.Store([]plans.Change{remove, drop, stop}, &spec)
	stopped, other, worse := remove, drop, stop
	stopped.State, other.Label, worse.Risk = api.WantStopped, "b", api.RiskData
	for name, tt := range map[string]struct {
		now     plans.Change
		unnamed bool
	}{
		"the same":               {remove, false},
		"stopped meanwhile":      {stopped, false},
		"the same pool":          {drop, false},
		"another pool":           {other, true},
		"harmless in the plan":   {worse, true},
		"no data, not in a plan": {plans.Change{Verb: plans.VerbChange, Object: "daemon/x", Risk: api.RiskRestart}, false},
	} {
		if got := plans.UnnamedData(&spec, destroying(1, tt.now)); len(got) > 0 != tt.unnamed {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// destroying is a proposal with changes that destroy data, of which there are so many in all.
func destroying(all int32, changes ...plans.Change) *api.PlanProposal {
	return &api.PlanProposal{Destroys: plans.Stored(changes, 1<<20), DestroysCount: all}
}

// TestUnnamedData_many: of more than there is room for, it is seen that there are more than the plan told of.
func TestUnnamedData_many(t *testing.T) {
	remove := plans.Change{Verb: plans.VerbRemove, Object: "daemon/x", Risk: api.RiskData}
	was := destroying(5000, remove)
	plans.Store([]plans.Change{remove}, was)
	for all, unnamed := range map[int32]bool{1: false, 4000: false, 5000: false, 5001: true} {
		if got := plans.UnnamedData(was, destroying(all, remove)); len(got) > 0 != unnamed {
			t.Errorf("of %d: %q", all, got)
		}
	}
}

// TestFromProjection_nothingToTell: a step that only forgets a key is not shown, and what comes after it is.
func TestFromProjection_nothingToTell(t *testing.T) {
	view := &engine.View{Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph"}}}
	ask := func(verb string) *engine.Plan {
		return &engine.Plan{Commands: []engine.Command{{Verb: verb, Object: "mgr.a"}}}
	}
	p := &engine.Projection{}
	for _, plan := range []*engine.Plan{ask("auth rm"), {Secrets: []engine.SecretWant{{Name: "ceph-key-mgr.a", Gone: true}}}, ask("osd purge")} {
		p.Steps = append(p.Steps, engine.ProjectedStep{View: view, Plan: plan})
	}
	r := plans.Report{Changes: plans.FromProjection(p), Clusters: []string{"default/ceph"}}
	var b bytes.Buffer
	r.Write(&b)
	for _, want := range []string{"\n  1 run auth rm", "\n  2 run osd purge"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, b.String())
		}
	}
}
