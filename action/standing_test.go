package action

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/kstatus"
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

// TestStand_kstatus: tools that know no Action see how one is, in each state.
func TestStand_kstatus(t *testing.T) {
	for state, want := range map[api.ActionState]kstatus.State{
		api.ActionPendingApproval: kstatus.Reconciling, api.ActionPendingSchedule: kstatus.Reconciling,
		api.ActionNew: kstatus.Reconciling, api.ActionRunning: kstatus.Reconciling, api.ActionDone: kstatus.Ready,
		api.ActionFailed: kstatus.Stalled, api.ActionCancelled: kstatus.Stalled, api.ActionLost: kstatus.Stalled,
	} {
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 2}}
		a.Status.State = state
		stand(a, &a.Status, time.Now())
		kstatus.Check(t, want, a)
		a.Generation++
		kstatus.Check(t, kstatus.Behind, a)
		a.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		kstatus.Check(t, kstatus.Deleted, a)
	}
}

// TestSchedule_seesLateChanges: an action that ended while its spec was changed says that this was seen: nothing comes of it any
// more, and a tool would wait for that.
func TestSchedule_seesLateChanges(t *testing.T) {
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 2}}
	a.Status.State = api.ActionDone
	stand(a, &a.Status, time.Now())
	if changed, _ := schedule([]*api.Action{a}, Facts{}); len(changed) > 0 {
		t.Errorf("written for nothing: %+v", changed)
	}
	a.Generation++
	changed, _ := schedule([]*api.Action{a}, Facts{})
	if len(changed) != 1 || changed[0].Status.State != api.ActionDone {
		t.Fatalf("%+v", changed)
	}
	stand(a, changed[0].Status, time.Now())
	a.Status = *changed[0].Status
	kstatus.Check(t, kstatus.Ready, a)
}
