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
		if got := plans.UnnamedData(&spec, plans.Stored([]plans.Change{tt.now}, 1<<20)); len(got) > 0 != tt.unnamed {
			t.Errorf("%s: %q", name, got)
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
	for _, want := range []string{"\n  1 ask for auth rm", "\n  2 ask for osd purge"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, b.String())
		}
	}
}
