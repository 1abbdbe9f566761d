package plans_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

func TestMoved(t *testing.T) {
	facts := func(uid string, fields ...string) plans.Facts {
		f := plans.Facts{UID: uid, Fields: map[string]string{}}
		for _, x := range fields {
			path, value, _ := strings.Cut(x, "=")
			f.Fields[path] = value
		}
		return f
	}
	tests := []struct {
		name     string
		was, now plans.Facts
		want     []string
	}{
		{"the same", facts("1", "a=1"), facts("1", "a=1"), nil},
		{"not there, then or now", facts(""), facts(""), nil},
		{"a field", facts("1", "spec.mon.count=3", "b=2"), facts("1", "spec.mon.count=5", "b=2"), []string{"x was changed by bob: spec.mon.count 3 -> 5"}},
		{"a field with signs in it", facts("1", "a=x = y: z"), facts("1", "a=\"\\n\""), []string{"x was changed by bob: a x = y: z -> \"\\n\""}},
		{"a device is gone", facts("1", "device wwn-1=Available"), facts("1"), []string{"x: device wwn-1 (Available) is gone"}},
		{"a device came", facts("1"), facts("1", "device wwn-1=Available"), []string{"x was changed by bob"}},
		{"it is gone", facts("1", "a=1"), facts(""), []string{"x is gone"}},
		{"it came", facts(""), facts("1", "a=1"), []string{"x was created by another user by bob"}},
		{"another of this name", facts("1", "a=1"), facts("2", "a=1"), []string{"x was deleted and created again by bob"}},
	}
	for _, tt := range tests {
		var spec api.PlanProposal
		plans.Basis{"x": tt.was}.Store(&spec)
		got := plans.Basis{"x": tt.now}.Moved(&spec, func(string) plans.Witness { return plans.Witness{Changed: "by bob"} })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestMoved_inALargeWorld: of more than there is room for, it is still told that something moved.
func TestMoved_inALargeWorld(t *testing.T) {
	large := plans.Basis{}
	for i := range 9000 {
		large[fmt.Sprintf("host/h%d", i)] = plans.Facts{UID: "1", Fields: map[string]string{"mode": "Active"}}
	}
	var spec api.PlanProposal
	large.Store(&spec)
	if n := len(spec.Basis); n > 8192 || len(spec.Facts) > 512<<10 {
		t.Fatalf("%d objects and %d bytes of facts are kept", n, len(spec.Facts))
	}
	nobody := func(string) plans.Witness { return plans.Witness{} }
	if moved := large.Moved(&spec, nobody); len(moved) > 0 {
		t.Errorf("nothing moved, and it is said that %q", moved)
	}
	large["host/h7"] = plans.Facts{UID: "1", Fields: map[string]string{"mode": "Drain"}}
	if moved := large.Moved(&spec, nobody); len(moved) != 1 {
		t.Errorf("a host moved, and it is said that %q", moved)
	}
}

// TestMoved_silence: a plan that was made in silence is void when the storage system answers, and another cluster's silence is its own.
func TestMoved_silence(t *testing.T) {
	const cluster = "storagecluster/default/c"
	made := plans.Basis{}
	made.AddSilence(cluster)
	var spec api.PlanProposal
	made.Store(&spec)
	nobody := func(string) plans.Witness { return plans.Witness{} }
	if moved := made.Moved(&spec, nobody); len(moved) > 0 || !plans.MadeInSilence(&spec, cluster) || plans.MadeInSilence(&spec, cluster+"2") {
		t.Errorf("it is as it was, and it is said that %q", moved)
	}
	want := []string{"the storage system of " + cluster + " answers now, but did not when the plan was made"}
	if diff := cmp.Diff(want, plans.Basis{}.Moved(&spec, nobody)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMoved_elsewhere: what a plan does not depend on any more is gone only if the server says so,
// and is no news where something else moved.
func TestMoved_elsewhere(t *testing.T) {
	made, of := plans.Basis{}, plans.Facts{UID: "1", Fields: map[string]string{"a": "1"}}
	const cluster = "storagecluster/default/ceph"
	for _, object := range []string{"pool/default/x", cluster, "daemons of " + cluster} {
		made[object] = of
	}
	var spec api.PlanProposal
	made.Store(&spec)
	witness := func(object string) plans.Witness { return plans.Witness{Gone: object == "pool/default/x"} }
	if diff := cmp.Diff([]string{"pool/default/x is gone"}, plans.Basis{}.Moved(&spec, witness)); diff != "" {
		t.Errorf("another plan deleted it (-want +got):\n%s", diff)
	}
	pool := plans.Basis{"pool/default/x": of}
	moved := pool.Moved(&spec, witness)
	if len(moved) != 2 || !strings.HasPrefix(moved[1], cluster+" mattered") {
		t.Errorf("only the pool matters now, and it is said that %q", moved)
	}
}

// TestStore_ofManyChanges: a plan keeps within its bounds, and its digest covers what there is no room for.
func TestStore_ofManyChanges(t *testing.T) {
	var changes []plans.Change
	for i := range 10000 {
		changes = append(changes, plans.Change{Verb: plans.VerbCreate, Object: fmt.Sprintf("daemon/c-osd-%d", i), Host: "h", Reason: strings.Repeat("x", 2000)})
	}
	var a, b api.PlanProposal
	plans.Store(changes, &a)
	size := 0
	for _, c := range a.Changes {
		size += len(c.Object) + len(c.Message)
	}
	if len(a.Changes) > 8192 || size > 512<<10 || a.Count != 10000 {
		t.Fatalf("%d changes of %d bytes are kept", len(a.Changes), size)
	}
	changes[9999].Host = "other"
	plans.Store(changes, &b)
	if a.Digest == b.Digest || len(plans.Differs(&a, &b)) == 0 {
		t.Error("another host for the last daemon is no difference")
	}
	if len(plans.Differs(&a, &a)) > 0 {
		t.Error("a plan differs from itself")
	}
}

func TestFields(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": "StorageCluster", "status": map[string]any{"x": "moves"},
		"metadata": map[string]any{"resourceVersion": "7", "labels": map[string]any{"a.b/c": "d", "plain": ""}},
		"spec":     map[string]any{"devices": []any{"b", "a"}, "count": int64(3), "text": "two words", "empty": map[string]any{}, "nobody": []any{}, "none": nil},
	}}
	want := map[string]string{
		"metadata.labels[a.b/c]": "d", "metadata.labels.plain": `""`,
		"spec.devices": `["b","a"]`, "spec.count": "3", "spec.text": `"two words"`,
	}
	if diff := cmp.Diff(want, plans.Fields(u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObjectChange_hidesSecrets(t *testing.T) {
	secret := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{"key": value}}}
	}
	c := plans.ObjectChange("secret/s", secret("b2xk"), secret("bmV3"))
	if len(c.Fields) != 1 || strings.Contains(fmt.Sprint(c), "b2xk") || strings.Contains(fmt.Sprint(c), "bmV3") {
		t.Errorf("%v", c)
	}
}
