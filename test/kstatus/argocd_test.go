package kstatus

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/deploy/argocd"
)

// TestArgoCD: each state of the conditions has its word, with the message that says why. What the
// engine writes is tried with Check, by the tests of those who write it.
func TestArgoCD(t *testing.T) {
	standing := func(s kstatus.Standing) *api.Pool {
		p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 2}}
		p.Status.ObservedGeneration = 2
		kstatus.Set(&p.Status.Conditions, 2, s, time.Now())
		return p
	}
	unknown := func(reason string) *api.StorageCluster {
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1}}
		ready := metav1.Condition{Type: api.ConditionReady, Status: metav1.ConditionUnknown, Reason: reason}
		ready.Message = "nobody looks"
		c.Status.Conditions = []metav1.Condition{ready}
		return c
	}
	behind := standing(kstatus.Standing{Ready: true, Reason: api.ReasonReady})
	behind.Generation = 3
	for _, test := range []struct {
		health, message string
		object          api.Resource
	}{
		{"Healthy", "Ready", standing(kstatus.Standing{Ready: true, Reason: api.ReasonReady})},
		{"Progressing", "it moves data", standing(kstatus.Standing{Reason: api.ReasonMovingData, Message: "it moves data"})},
		{"Degraded", "write", standing(kstatus.Standing{
			Stalled: true, Reason: api.ReasonInvalidSpec, Message: "write less",
		})},
		{"Progressing", "newest spec", behind},
		{"Progressing", "nobody has said", &api.Pool{}},
	} {
		health, message := ArgoCD(t, test.object)
		if health != test.health || !strings.Contains(message, test.message) {
			t.Errorf("got %s (%q), want %s (%q)", health, message, test.health, test.message)
		}
	}
	for reason, want := range map[string]string{"Paused": "Suspended", "AgentDisconnected": "Unknown"} {
		if health, message := ArgoCD(t, unknown(reason)); health != want || message != "nobody looks" {
			t.Errorf("%s: %s (%q)", reason, health, message)
		}
	}
}

// TestArgoCD_kinds: there is a script for each kind that has the condition Ready.
func TestArgoCD_kinds(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict([]byte(argocd.ConfigMap()), &patch); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		status := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		_, wanted := status.Properties["conditions"]
		kind := d.Spec.Names.Kind
		script, there := patch.Data["resource.customizations.health.holdfast.io_"+kind]
		if there != wanted || slices.Contains(argocd.Kinds, kind) != wanted {
			t.Errorf("%s has a script: %v, want %v", kind, there, wanted)
		}
		if there && strings.TrimSpace(script) != strings.TrimSpace(argocd.Health) {
			t.Errorf("%s has another script:\n%s", kind, script)
		}
	}
}
