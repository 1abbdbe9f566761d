package store_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func TestRemovePlans(t *testing.T) {
	w := newWorld(t)
	if err := w.LeadAs(t.Context(), "plans"); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, "plans")
	const plans = 25 // more than one page
	for i := range plans {
		p := &api.Plan{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("plan-%06x", i)},
			Spec:       api.PlanSpec{Manifest: "x"},
		}
		if err := w.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		var list api.PlanList
		if err := w.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if err := s.RemovePlans(t.Context(), time.Now().Add(-time.Hour)); err != nil || count() != plans {
		t.Fatalf("of plans made a moment ago %d are left (%v)", count(), err)
	}
	if err := s.RemovePlans(t.Context(), time.Now().Add(time.Hour)); err != nil || count() != 0 {
		t.Fatalf("of old plans %d are left (%v)", count(), err)
	}
}

// TestRemovePlans_applying: a plan that is being applied is kept, and one that somebody has begun
// to apply since it was read, too.
func TestRemovePlans_applying(t *testing.T) {
	w, s := newWorld(t), newStore(t, "applying")
	make := func(name string, state api.PlanState, age time.Duration) *api.Plan {
		t.Helper()
		p := askedBy("", "", poolManifest)
		p.Name = name
		must(t, w.Create(t.Context(), p))
		read := p.DeepCopy()
		marked := metav1.NewTime(time.Now().Add(-age))
		p.Status = api.PlanStatus{State: state, Time: &marked}
		must(t, w.UpdateStatus(t.Context(), p))
		return read
	}
	there := func(p *api.Plan) bool { return w.Get(t.Context(), p.DeepCopy()) == nil }
	before := time.Now().Add(time.Hour) // all of them are old
	begun := make("plan-begun", api.PlanApplying, -2*time.Hour)
	cut, applied := make("plan-cut-off", api.PlanApplying, 0), make("plan-applied", api.PlanApplied, -2*time.Hour)
	must(t, s.RemoveUnchanged(t.Context(), begun))
	must(t, s.RemovePlans(t.Context(), before))
	if !there(begun) || there(cut) || there(applied) {
		t.Errorf("begun: %v, cut off long ago: %v, applied: %v", there(begun), there(cut), there(applied))
	}
	must(t, w.Get(t.Context(), begun))
	must(t, s.RemoveUnchanged(t.Context(), begun))
	if there(begun) {
		t.Error("one that did not change stays")
	}
}

// TestRecord_labels: the ConfigMap in which the leader records what it told of a cluster has the
// labels of the cluster.
func TestRecord_labels(t *testing.T) {
	w, s := newWorld(t), newStore(t, "recordlabels")
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "labelled"}}
	c.Spec.Type = api.StorageCeph
	_, err := s.Emit(t.Context(), c, nil, map[string]*string{"a": new("1")})
	must(t, err)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "told-default.labelled"}}
	must(t, w.Get(t.Context(), o))
	if want := engine.LabelsFor(c, "record"); !maps.Equal(o.Labels, want) {
		t.Errorf("labels %v, want %v", o.Labels, want)
	}
}
