package store

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/heartbeat"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

func TestWithoutValues(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"key": []byte("very secret")}}
	if _, err := withoutValues(secret); err != nil {
		t.Fatal(err)
	}
	if value, ok := secret.Data["key"]; !ok || value != nil {
		t.Errorf("the cache would hold %q", secret.Data)
	}
}

// TestStandHost_pod: a host that is not heard repeats what Kubernetes knows of its agent's pod, also if
// that comes later, and no more when it is heard.
func TestStandHost_pod(t *testing.T) {
	connected := metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Message: "no heartbeat"}
	h := &api.Host{}
	h.Status.Conditions = []metav1.Condition{connected}
	standHost(h, time.Now())
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: api.HostAgentPod, Message: "its pod fails"})
	if !unsaidStanding(h) {
		t.Error("what is known of the pod is not said")
	}
	standHost(h, time.Now())
	ready := meta.FindStatusCondition(h.Status.Conditions, api.ConditionReady)
	if want := "no heartbeat: its pod fails"; unsaidStanding(h) || ready.Message != want {
		t.Errorf("%+v, want %q", ready, want)
	}
	h.Status.Conditions[0].Status = metav1.ConditionTrue
	standHost(h, time.Now())
	if ready := meta.FindStatusCondition(h.Status.Conditions, api.ConditionReady); ready.Message != "" {
		t.Errorf("a host that is heard says %q", ready.Message)
	}
}

// TestStandHost: tools that know no Host see how one is.
func TestStandHost(t *testing.T) {
	connected := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: api.HostAgentConnected, Status: status, Reason: heartbeat.ReasonSilent}
	}
	twins := metav1.Condition{Type: api.HostSingleMachine, Status: metav1.ConditionFalse}
	for _, test := range []struct {
		conditions []metav1.Condition
		want       kstatus.State
	}{
		{nil, kstatus.New},
		{[]metav1.Condition{connected(metav1.ConditionTrue)}, kstatus.Ready},
		{[]metav1.Condition{connected(metav1.ConditionFalse)}, kstatus.Stalled},
		{[]metav1.Condition{connected(metav1.ConditionTrue), twins}, kstatus.Stalled},
	} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h", Generation: 2}}
		h.Status.ObservedGeneration, h.Status.Conditions = -1, test.conditions
		if standHost(h, time.Now()); unsaidStanding(h) {
			t.Errorf("%v: it is not said how it is", test.conditions)
		}
		kstatus.Check(t, test.want, h)
		h.Generation++
		kstatus.Check(t, kstatus.Behind, h)
		if test.want != kstatus.New && !unsaidStanding(h) {
			t.Error("a changed spec is not seen")
		}
		h.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		kstatus.Check(t, kstatus.Deleted, h)
	}
}
