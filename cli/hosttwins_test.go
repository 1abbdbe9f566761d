package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestAgentText_twins: the list of hosts does not call a host connected on which two machines run.
func TestAgentText_twins(t *testing.T) {
	h := &api.Host{Status: api.HostStatus{Conditions: []metav1.Condition{
		{Type: api.HostAgentConnected, Status: metav1.ConditionTrue}, {Type: api.HostSingleMachine, Status: metav1.ConditionFalse, Reason: "TwoMachines"},
	}}}
	if got := agentText(h, time.Now()); got != "on two machines" {
		t.Errorf("it says %q", got)
	}
}
