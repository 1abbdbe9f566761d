package ceph

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What a plan asks of Ceph carries its risk: here on the way of a host that is drained.
func TestVerbs_risk(t *testing.T) {
	for name, v := range verbs {
		if v.risk == "" {
			t.Errorf("nobody says what %q may do", name)
		}
	}
	f := withFake(fourHosts())
	f.settle(t)
	f.mode(1, api.HostDrain)
	risks := map[string]api.Risk{}
	for range 40 {
		f.agents()
		for _, c := range f.round(t).Commands {
			risks[c.Verb] = c.Risk
		}
		f.now = f.now.Add(recheckLater)
	}
	for verb, want := range map[string]api.Risk{
		verbReweight: api.RiskNone, verbOSDOut: api.RiskNone, verbOSDPurge: api.RiskRedundancy, verbCrushRm: api.RiskNone, verbMonRemove: api.RiskRedundancy,
	} {
		if got, asked := risks[verb]; !asked || got != want {
			t.Errorf("%s, asked for: %v, has the risk %q, and not %q", verb, asked, got, want)
		}
	}
}
