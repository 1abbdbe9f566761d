package silence

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Standing is how a host is by whether its agent is connected, and is the only one. judged is
// false while nobody knows.
func Standing(h *api.Host) (standing kstatus.Standing, judged bool) {
	connected := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
	single := meta.FindStatusCondition(h.Status.Conditions, api.HostSingleMachine)
	switch {
	case connected == nil:
		return standing, false
	case connected.Status != metav1.ConditionTrue:
		message := cmp.Or(connected.Message, "the agent is disconnected")
		if pod := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentPod); pod != nil {
			message += ": " + pod.Message
		}
		return kstatus.Standing{Stalled: true, Reason: api.ReasonAgentDisconnected, Message: message}, true
	case single != nil && single.Status == metav1.ConditionFalse:
		message := cmp.Or(single.Message, "two machines run as this host")
		return kstatus.Standing{Stalled: true, Reason: api.ReasonTwoMachines, Message: message}, true
	}
	return kstatus.Standing{Ready: true, Reason: api.ReasonReady}, true
}
