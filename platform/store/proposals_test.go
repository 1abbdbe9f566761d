package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
)

const poolManifest = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: asked}\nspec: {cluster: none}\n"

// askedBy is a plan as the API server records it.
func askedBy(user, group, manifest string) *api.Plan {
	return &api.Plan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plan-asked"},
		Spec: api.PlanSpec{
			Operation: api.PlanApply, Conflicts: api.ConflictsRefuse, Manifest: manifest,
			Requester: user, Groups: []string{group, "system:authenticated"},
		},
	}
}

// TestPlans_rights: what a plan comes to is asked of the API server with the rights of who made the
// plan, and nothing is written.
func TestPlans_rights(t *testing.T) {
	w, plans := newWorld(t), newStore(t, "rights").Plans()
	unknown := askedBy("ann", "holdfast:admins", poolManifest)
	unknown.Spec.Groups = unknown.Spec.Groups[:1]
	for name, tt := range map[string]struct {
		plan    *api.Plan
		refused bool
	}{
		"unknown":          {unknown, true},
		"an administrator": {askedBy("ann", "holdfast:admins", poolManifest), false},
		"a viewer":         {askedBy("vi", "holdfast:viewers", poolManifest), true},
		"a host":           {askedBy("holdfast:host:h1", "holdfast:hosts", poolManifest), true},
		"nobody":           {askedBy("", "", poolManifest), true},
		"what is invalid": {askedBy("ann", "holdfast:admins", "apiVersion: holdfast.io/v1alpha1\nkind: "+
			"Pool\nmetadata: {name: a}\n"), true},
		"an unknown kind": {askedBy("ann", "holdfast:admins", "apiVersion: nowhere/v1\nkind: Pool\nmetadata: "+
			"{name: a}\n"), true},
		"a secret": {askedBy("ann", "holdfast:admins",
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n"), true},
	} {
		r, err := plans.Check(t.Context(), tt.plan)
		if errors.Is(err, propose.ErrRefused) != tt.refused || (err == nil) == tt.refused {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.refused && (len(r.Targets) != 1 || r.Targets[0].Live != nil || r.Targets[0].After.GetUID() == "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "asked"}}
	if err := w.Get(t.Context(), pool); err == nil {
		t.Error("the pool was made")
	}
}

// TestPlans_asked: a plan is to be answered until it was, and one that an older program answered
// itself is not.
func TestPlans_asked(t *testing.T) {
	w := newWorld(t)
	s := newStore(t, "asked")
	plans, changed := s.Plans(), make(chan struct{}, 100)
	plans.Notify(t.Context(), func() { changed <- struct{}{} })
	name := types.NamespacedName{Namespace: "default", Name: "plan-open"}
	asked := func() bool { return slices.Contains(plans.Asked(), name) }
	until := func(want bool) {
		t.Helper()
		late := time.After(time.Minute)
		for asked() != want {
			select {
			case <-changed:
			case <-late:
				t.Fatalf("it is asked: %v, want %v", !want, want)
			}
		}
	}
	old := askedBy("", "", poolManifest)
	old.Name, old.Spec.Digest = "plan-old", "d"
	must(t, w.Create(t.Context(), old))
	open := askedBy("", "", poolManifest)
	open.Name = name.Name
	must(t, w.Create(t.Context(), open))
	until(true)
	plan, err := plans.Get(t.Context(), name)
	must(t, err)
	if plan.Spec.Requester == "" || len(plan.Spec.Groups) == 0 || plan.Spec.Manifest != poolManifest {
		t.Errorf("it is read as %+v", plan.Spec)
	}
	answer := &api.PlanProposal{PlanContent: api.PlanContent{Digest: "d"}}
	plan.Status = api.PlanStatus{State: api.PlanProposed, Proposal: answer}
	must(t, plans.Answer(t.Context(), plan))
	until(false)
	if slices.Contains(plans.Asked(), types.NamespacedName{Namespace: "default", Name: old.Name}) {
		t.Error("the plan of an older program is asked")
	}
	plan, err = plans.Get(t.Context(), name)
	must(t, err)
	plan.Status.Proposal.Digest = "e"
	if err := plans.Answer(t.Context(), plan); err == nil {
		t.Error("an answer was changed")
	}
	must(t, w.Delete(t.Context(), plan))
	must(t, plans.Answer(t.Context(), plan))
}

// TestPlans_room: the largest manifest and the largest answer to it have room in one object.
func TestPlans_room(t *testing.T) {
	w, plans := newWorld(t), newStore(t, "room").Plans()
	large := askedBy("", "", strings.Repeat(strings.Repeat("#", 63)+"\n", propose.MaxManifest/64))
	large.Name = "plan-large"
	must(t, w.Create(t.Context(), large))
	plan, err := plans.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: large.Name})
	must(t, err)
	text, err := json.Marshal(plan)
	must(t, err)
	a := &api.PlanProposal{PlanContent: api.PlanContent{Digest: "d"}}
	for i := 0; ; i++ {
		a.Basis = append(a.Basis, api.PlanBasis{
			Object: fmt.Sprintf("storagenode/default/n%d", i),
			UID:    strings.Repeat("u", 36), Digest: "d",
		})
		if answer, err := json.Marshal(a); err != nil || len(answer)+len(text) > propose.Room {
			must(t, err)
			break
		}
	}
	if len(a.Basis) < 1000 {
		t.Fatalf("there is room for %d objects", len(a.Basis))
	}
	plan.Status = api.PlanStatus{State: api.PlanProposed, Proposal: a}
	must(t, plans.Answer(t.Context(), plan))
	plan, err = plans.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: large.Name})
	must(t, err)
	if plan.Status.Proposal == nil || len(plan.Status.Proposal.Basis) != len(a.Basis) {
		t.Error("the answer is not all there")
	}
	must(t, w.Delete(t.Context(), plan))
}

// TestRemovePlans_expired: a plan that only asked has less time than one that is kept. The Secrets
// of plans go when nobody waits for their answers any more, also one without a plan, and no other.
func TestRemovePlans_expired(t *testing.T) {
	w, s := newWorld(t), newStore(t, "expired")
	type with struct {
		expires string
		secret  corev1.SecretType
	}
	cases := map[string]with{
		"plan-kept": {"", api.SecretTypePlan}, "plan-odd": {"for ever", api.SecretTypePlan},
		"plan-asking": {"10m", api.SecretTypePlan}, "plan-other": {"10m", corev1.SecretTypeOpaque},
	}
	for name, c := range cases {
		p := askedBy("", "", poolManifest)
		p.Name, p.Annotations = name, map[string]string{api.AnnotationExpiresAfter: c.expires}
		must(t, w.Create(t.Context(), p))
		must(t, w.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Type:       c.secret,
		}))
	}
	alone := &corev1.Secret{Type: api.SecretTypePlan}
	alone.Namespace, alone.Name = "default", "plan-never-made"
	must(t, w.Create(t.Context(), alone))
	must(t, s.RemovePlans(t.Context(), time.Now().Add(-7*24*time.Hour)))
	must(t, w.Get(t.Context(), alone))
	must(t, s.RemovePlans(t.Context(), time.Now().Add(-7*24*time.Hour).Add(11*time.Minute)))
	if err := w.Get(t.Context(), alone); err == nil {
		t.Error("the secret of a plan that was never made stays")
	}
	for name, c := range cases {
		meta := metav1.ObjectMeta{Namespace: "default", Name: name}
		stays := c.expires != "10m"
		if err := w.Get(t.Context(), &api.Plan{ObjectMeta: meta}); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
		stays = c.secret != api.SecretTypePlan
		if err := w.Get(t.Context(), &corev1.Secret{ObjectMeta: meta}); (err == nil) != stays {
			t.Errorf("the secret %s: %v", name, err)
		}
	}
}
