package propose

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// A wipe is a change that destroys data, and one that would be refused is foreseen.
func TestForesee_wipe(t *testing.T) {
	before := &engine.Objects{Hosts: make([]api.Host, 1), Daemons: make([]api.Daemon, 1)}
	before.Hosts[0].Name = "h1"
	before.Hosts[0].Status.Devices = []api.Device{
		{ID: "wwn-1", Path: "/dev/sda", Kind: api.DeviceDisk}, {ID: "wwn-2", Path: "/dev/sdb", Kind: api.DeviceDisk},
	}
	before.Daemons[0].Spec = api.DaemonSpec{Host: "h1", Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}}
	for id, want := range map[string]string{
		"wwn-1": "is in use by daemon", "wwn-2": "", "wwn-3": "no device of host h1",
	} {
		a := &api.Action{
			ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "a"},
			Spec: api.ActionSpec{
				Kind: hostaction.Wipe, Host: "h1", Target: "device/" + id,
				Parameters: map[string]api.ActionParameter{hostaction.ParamConfirm: api.ActionParameter(id)},
			},
		}
		p := &Proposal{home: Home{Kinds: map[string]action.Kind{hostaction.Wipe: {Name: hostaction.Wipe}}}}
		p.foresee(before, a)
		if got := strings.Join(p.Foreseen, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: foreseen %q, want %q", id, got, want)
		}
		u := plans.Unstructured(engine.KindAction, a)
		if risk := (Target{Unstructured: u, After: u}).risk(before); risk != api.RiskData {
			t.Errorf("%s: risk %s", id, risk)
		}
	}
}
