package gone

import (
	"bytes"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(policy string, conditions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"finalizers": []any{"holdfast.io/cluster"}},
		"spec":     map[string]any{"deletionPolicy": policy}, "status": map[string]any{"conditions": conditions},
	}}
}

func condition(kind, status, message string) any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func TestData(t *testing.T) {
	for policy, want := range map[string]string{
		"Retain": "; its data is kept (deletionPolicy Retain)",
		"Wipe":   "; its data is destroyed (deletionPolicy Wipe)", "": "",
	} {
		if got := Data(object(policy)); got != want {
			t.Errorf("%s: %s", policy, got)
		}
	}
}

// TestTell says a thing once, although a time in it changes, and nothing of what is over at once.
func TestTell(t *testing.T) {
	var out bytes.Buffer
	start := time.Unix(1e9, 0)
	teller := Teller{Out: &out, Name: "pool/a", Since: start}
	for i, u := range []*unstructured.Unstructured{
		object("", condition("Ready", "False", "too early")),
		object("", condition("Ready", "False", "a client has it mounted for 3s")),
		object("", condition("Ready", "False", "a client has it mounted for 4s")),
		object("", condition("Ready", "False", "later"), condition("Reconciling", "True", "two daemons stop")),
		object("", condition("Ready", "True", "all is well")),
	} {
		teller.Tell(u, start.Add(time.Duration(2*i)*time.Second))
	}
	want := "waiting until pool/a is gone: a client has it mounted for 3s\n" +
		"waiting until pool/a is gone: two daemons stop\n" +
		"waiting until pool/a is gone: its finalizers [holdfast.io/cluster] are there\n"
	if out.String() != want {
		t.Error(out.String())
	}
}
