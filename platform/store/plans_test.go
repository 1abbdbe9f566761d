package store_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestRemovePlans(t *testing.T) {
	w := newWorld(t)
	if err := w.LeadAs(t.Context(), "plans"); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, "plans")
	const plans = 25 // more than one page
	for i := range plans {
		p := &api.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("plan-%06x", i)}, Spec: api.PlanSpec{Manifest: "x"}}
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
