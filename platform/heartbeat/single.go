package heartbeat

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/platform/twins"
)

// Reasons of a Host's condition SingleMachine.
const (
	ReasonTwoMachines = "TwoMachines"
	ReasonOneMachine  = "OneMachine"
)

// Single says what the condition SingleMachine of a host should be; ok is false when it is right as
// it is.
func (h *Beats) Single(host *api.Host, now time.Time) (want metav1.Condition, ok bool) {
	b, _ := h.of(host.Name)
	all := b.instances.Together(now)
	have := meta.FindStatusCondition(host.Status.Conditions, api.HostSingleMachine)
	want = metav1.Condition{Type: api.HostSingleMachine, Status: metav1.ConditionTrue, Reason: ReasonOneMachine}
	if len(all) > 0 {
		want.Status, want.Reason = metav1.ConditionFalse, ReasonTwoMachines
		want.Message = instance.Together(host.Name, all...)
	}
	switch {
	case have == nil:
		return want, len(all) > 0
	case len(all) == 0 && have.Status == metav1.ConditionFalse && now.Sub(h.began) < twins.For:
		return want, false // a new leader has not listened for long enough
	}
	return want, have.Status != want.Status || have.Message != want.Message
}
