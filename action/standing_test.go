package action

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// An action says in Kubernetes' words how it is, in each state.
func TestStand(t *testing.T) {
	for state, want := range map[api.ActionState]string{
		"": "", api.ActionPendingApproval: "Reconciling", api.ActionPendingSchedule: "Reconciling", api.ActionNew: "Reconciling",
		api.ActionRunning: "Reconciling", api.ActionDone: "Ready", api.ActionFailed: "Stalled", api.ActionCancelled: "Stalled", api.ActionLost: "Stalled",
	} {
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		s := &api.ActionStatus{State: api.ActionRunning}
		stand(a, s, time.Now())
		s.State = state
		if state == "" {
			s.Conditions = nil
		}
		stand(a, s, time.Now())
		is := ""
		for _, kind := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
			c := meta.FindStatusCondition(s.Conditions, kind)
			if c == nil {
				continue
			}
			if c.ObservedGeneration != 2 || c.Message == "" || c.Reason == "" {
				t.Errorf("%s: %+v", state, *c)
			}
			if c.Status == metav1.ConditionTrue {
				is += kind
			}
		}
		if is != want {
			t.Errorf("%s: %s, want %s", state, is, want)
		}
	}
}
