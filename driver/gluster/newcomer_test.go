package gluster

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Only of a node that the pool knows nothing of may an agent clear away what lies on its host.
func TestNewcomer(t *testing.T) {
	w := poolOf(t, 3)
	w.settle()
	w.host(4, 1)
	w.node(4, 4)
	w.settle()
	for name, want := range map[string]bool{"c-glusterd-n1": false, "c-glusterd-n4": true} {
		if got := w.daemons[name].Spec.Parameters[api.ParameterNewcomer] != ""; got != want {
			t.Errorf("%s: newcomer is %v", name, got)
		}
	}
	delete(w.daemons, "c-glusterd-n3") // as after a restored backup: the pool has the node
	if w.round(); w.daemons["c-glusterd-n3"].Spec.Parameters[api.ParameterNewcomer] != "" {
		t.Error("a node that the pool has is called a newcomer")
	}
}
