package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// writeTries bounds how often a write is tried again because something that does not matter changed meanwhile, such as a
// status.
const writeTries = 20

// writer writes objects in the name of one owner, each only if it is still as it was when it was checked: what somebody else
// changes meanwhile is a conflict, and is not written over.
type writer struct {
	client    client.Client
	owner     string
	conflicts api.PlanConflicts
	refusals  api.PlanRefusals
	// exact is set for a plan that was named: then nothing at all of the object may have changed.
	exact bool
}

// target is an object of a request.
type target struct {
	object
	// live is the object as it was found, nil if there was none; after is what applying makes of it, nil if it is deleted.
	live, after *unstructured.Unstructured
}

// check reads what there is of an object, and has the server say what applying it makes of it.
func (w *writer) check(ctx context.Context, o object) (target, error) {
	t := target{object: o.asRead()}
	var err error
	if t.live, err = w.read(ctx, o); err != nil {
		return t, explain(o, err)
	}
	t.after = t.DeepCopy()
	if err := w.apply(ctx, t.after, client.DryRunAll); err != nil {
		if t.live == nil && isFieldConflict(err) { // somebody has made it at this moment
			t.live, _ = w.read(ctx, o)
		}
		return t, explain(o, w.contest(t, err))
	}
	if err := checkAsRead(o, t); err != nil {
		return t, explain(o, err)
	}
	return t, nil
}

// read returns the object as it is; nil if there is none.
func (w *writer) read(ctx context.Context, o object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind())
	err := withDeadline(ctx, func(ctx context.Context) error { return w.client.Get(ctx, client.ObjectKeyFromObject(o), u) })
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// apply applies by server-side apply; the object becomes what the server answered.
func (w *writer) apply(ctx context.Context, u *unstructured.Unstructured, extra ...client.ApplyOption) error {
	opts := append([]client.ApplyOption{client.FieldOwner(w.owner)}, extra...)
	if w.conflicts == api.ConflictsTake {
		opts = append(opts, client.ForceOwnership)
	}
	send := func(ctx context.Context) error {
		return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	}
	err := withDeadline(ctx, send)
	if plans.ConflictsWith(err, w.owner) { // by another command alone, such as 'holdfast host label'
		opts = append(opts, client.ForceOwnership)
		err = withDeadline(ctx, send)
	}
	return err
}

// write applies an object that was checked, and says what that did.
func (w *writer) write(ctx context.Context, t target) (string, error) {
	for range writeTries {
		verb, err := w.tryWrite(ctx, t)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || isFieldConflict(err) {
			if err != nil {
				err = explain(t.object, w.contest(t, err))
			}
			return verb, err
		}
		now, err := w.recheck(ctx, t)
		if err != nil {
			return "", err
		}
		t = now
	}
	return "", explain(t.object, fmt.Errorf("not written, because it was changed %d times meanwhile: retry", writeTries))
}

func (w *writer) tryWrite(ctx context.Context, t target) (string, error) {
	if t.live == nil {
		return "created", w.create(ctx, t)
	}
	was := plans.Fields(t.live)
	if err := w.takeOver(ctx, t); err != nil {
		return "", err
	}
	u := t.DeepCopy()
	u.SetUID(t.live.GetUID())
	u.SetResourceVersion(t.live.GetResourceVersion())
	if err := w.apply(ctx, u); err != nil {
		return "", err
	}
	// Taking fields over may have written what was wanted already.
	if u.GetResourceVersion() == t.live.GetResourceVersion() && len(plans.Differences(was, plans.Fields(u))) == 0 {
		return "unchanged", nil
	}
	return "configured", nil
}

// create makes an object, if there is none: server-side apply alone would write over one that somebody of the same name has
// made a moment ago.
func (w *writer) create(ctx context.Context, t target) error {
	u := t.DeepCopy()
	err := withDeadline(ctx, func(ctx context.Context) error { return w.client.Create(ctx, u, client.FieldOwner(w.owner)) })
	if err != nil {
		return err
	}
	t.live = u
	if err := w.takeOver(ctx, t); err != nil {
		return &createdError{err}
	}
	return nil
}

// createdError is what was met after an object was created.
type createdError struct{ error }

func (e *createdError) Unwrap() error { return e.error }

// takeOver has the fields of an object that was created or changed by this owner owned as applied ones: who creates an object owns all its
// defaults, too, and would keep others from setting them. An object that this owner only applied is left alone. What somebody else
// changes meanwhile is left to them; the next apply tells of it.
func (w *writer) takeOver(ctx context.Context, t target) error {
	for range writeTries {
		if !slices.ContainsFunc(t.live.GetManagedFields(), w.created) {
			return nil
		}
		err := w.giveUpDefaults(ctx, t)
		if !apierrors.IsConflict(err) {
			return err
		}
		if t.live, err = w.read(ctx, t.object); err != nil || t.live == nil {
			return err
		}
	}
	return nil
}

// created says whether an entry is that of an owner who created the object.
func (w *writer) created(m metav1.ManagedFieldsEntry) bool {
	return m.Manager == w.owner && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
}

// giveUpDefaults applies what was created, and then gives up what was only created.
func (w *writer) giveUpDefaults(ctx context.Context, t target) error {
	u := t.DeepCopy()
	u.SetResourceVersion(t.live.GetResourceVersion())
	if err := w.apply(ctx, u); err != nil {
		return err
	}
	kept := slices.DeleteFunc(u.GetManagedFields(), w.created)
	for i := range kept {
		// Applying what is there already leaves no time, and others want to know since when a field is owned.
		if kept[i].Manager == w.owner && kept[i].Time == nil {
			now := metav1.Now()
			kept[i].Time = &now
		}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": kept},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("while taking over its fields: %w", err)
	}
	err = withDeadline(ctx, func(ctx context.Context) error {
		return w.client.Patch(ctx, u, client.RawPatch(types.JSONPatchType, patch))
	})
	if err == nil {
		*t.live = *u
	}
	return err
}

// recheck looks again at an object that changed since it was checked. It is an error if what changed is what matters.
func (w *writer) recheck(ctx context.Context, t target) (target, error) {
	now, err := w.check(ctx, t.object)
	if err != nil {
		return now, err
	}
	if now.live == nil || t.live != nil && now.live.GetUID() != t.live.GetUID() {
		return now, &exitError{exitRefused, fmt.Errorf("%s was deleted meanwhile: apply again to create it", t)}
	}
	theirs := plans.Differences(plans.Fields(t.live), plans.Fields(now.live))
	mine := plans.Differences(plans.Fields(now.live), plans.Fields(now.after))
	if clash := clashes(theirs, mine, w.exact); len(clash) > 0 && len(mine) > 0 {
		return now, &exitError{exitRefused, fmt.Errorf("%s was changed %s meanwhile and was not overwritten:\n  %s",
			t, plans.WhoChanged(now.live), strings.Join(clash, "\n  "))}
	}
	return now, nil
}

// clashes are the fields that both have changed; or, where nothing may have changed, all that they did.
func clashes(theirs, mine []plans.FieldChange, exact bool) []string {
	wanted := map[string]string{}
	for _, m := range mine {
		wanted[m.Path] = m.New
	}
	var all []string
	for _, c := range theirs {
		want, both := wanted[c.Path]
		switch {
		case both:
			all = append(all, fmt.Sprintf("%s: it was %s and is %s now; you want %s", c.Path, c.Old, c.New, want))
		case exact:
			all = append(all, c.String())
		}
	}
	return all
}

// isFieldConflict says whether an error is about fields that somebody else has applied.
func isFieldConflict(err error) bool { return len(plans.FieldConflicts(err)) > 0 }

// contest makes of the server's words on a conflict such as say what there is, what was wanted, and whose it is.
func (w *writer) contest(t target, err error) error {
	causes := plans.FieldConflicts(err)
	if len(causes) == 0 {
		return err
	}
	theirs, mine := plans.Fields(t.live), plans.Fields(t.Unstructured)
	var all []string
	for _, c := range causes {
		path := strings.TrimPrefix(c.Field, ".")
		manager := plans.ManagerIn(c)
		text := fmt.Sprintf("%s belongs to %s%s", path, manager, when(t.live, manager))
		if have, ok := theirs[path]; ok {
			text = fmt.Sprintf("%s: %s set it to %s%s; you want %s", path, manager, have, when(t.live, manager), mine[path])
		}
		all = append(all, text)
	}
	return &exitError{exitRefused, fmt.Errorf("another user has applied these fields:\n  %s\nLeave them out of your file, or take them over with %s",
		strings.Join(all, "\n  "), w.forced())}
}

// forced is how fields are taken over: a plan that is named says itself whether it does.
func (w *writer) forced() string {
	if w.exact {
		return "another plan: 'holdfast plan --force-conflicts'"
	}
	return "--force-conflicts"
}

// when says when a manager last wrote to an object.
func when(u *unstructured.Unstructured, manager string) string {
	var last *metav1.Time
	if u != nil {
		for _, m := range u.GetManagedFields() {
			if m.Manager == manager && m.Subresource == "" && (last == nil || last.Before(m.Time)) {
				last = m.Time
			}
		}
	}
	if last == nil {
		return ""
	}
	return " at " + last.UTC().Format(time.RFC3339)
}
