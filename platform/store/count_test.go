package store_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestStore_counts counts silent agents, actions and the hosts that were heard.
func TestStore_counts(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	silent, heard, actions := s.SilentAgents(), len(s.ReportAges()), s.ActionStates()[""]

	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "counted"}}
	must(t, w.Create(t.Context(), host))
	host.Status.Conditions = []metav1.Condition{{
		Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: "Silent", LastTransitionTime: metav1.Now(),
	}}
	must(t, w.UpdateStatus(t.Context(), host))
	must(t, w.Beat(t.Context(), host.Name))
	action := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "counted"},
		Spec:       api.ActionSpec{Kind: "test.counted", Target: "host/counted"},
	}
	must(t, w.Create(t.Context(), action))
	eventually(t, "all are counted", func() bool {
		return s.SilentAgents() == silent+1 && len(s.ReportAges()) == heard+1 && s.ActionStates()[""] == actions+1
	})
	must(t, w.Delete(t.Context(), action))
	must(t, w.Delete(t.Context(), host))
	eventually(t, "what is gone is not counted", func() bool {
		return s.SilentAgents() == silent && s.ActionStates()[""] == actions
	})
}
