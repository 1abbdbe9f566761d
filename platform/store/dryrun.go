package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// dryRun has the API server say what becomes of the objects of a Plan.
type dryRun struct {
	client client.Client
	plan   *api.Plan
	// may says why the requester may not do something with an object. It is nil where the client
	// acts in the requester's name.
	may func(ctx context.Context, u *unstructured.Unstructured, resource meta.RESTMapper, verbs ...string) error
}

// allowed says why the requester may not do what the client would do for it.
func (d dryRun) allowed(ctx context.Context, u *unstructured.Unstructured, verbs ...string) error {
	if d.may == nil {
		return nil
	}
	return d.may(ctx, u, d.client.RESTMapper(), verbs...)
}

// checkNamed is check with an error that names the object.
func (d dryRun) checkNamed(ctx context.Context, u *unstructured.Unstructured) (propose.Target, error) {
	t, err := d.check(ctx, u)
	switch { // the cause may show what is secret
	case err == nil || !propose.IsSecret(u):
	case errors.Is(err, propose.ErrRefused):
		err = propose.Refuse("the API server refuses this Secret")
	default:
		err = errors.New("the API server did not check this Secret")
	}
	if err != nil {
		err = fmt.Errorf("%s/%s: %w", strings.ToLower(u.GetKind()), u.GetName(), err)
	}
	return t, err
}

// check reads what there is of an object, and finds out what becomes of it.
func (d dryRun) check(ctx context.Context, u *unstructured.Unstructured) (propose.Target, error) {
	t := propose.Target{Unstructured: u}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := d.allowed(ctx, u, "get"); err != nil {
		return t, err
	}
	err := d.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case err == nil:
		t.Live = live
	case !apierrors.IsNotFound(err):
		return t, refusal(err)
	}
	if d.plan.Spec.Operation == api.PlanDelete {
		return t, d.remove(ctx, t.Live)
	}
	verbs := []string{"patch"}
	if t.Live == nil {
		verbs = append(verbs, "create")
	}
	if err := d.allowed(ctx, u, verbs...); err != nil {
		return t, err
	}
	t.After = u.DeepCopy()
	return t, d.apply(ctx, t.After)
}

// remove asks whether an object may be deleted. What goes with its cluster, or leaves in order, is
// for the server to judge when that is done.
func (d dryRun) remove(ctx context.Context, live *unstructured.Unstructured) error {
	unasked := []string{"Daemon", "Host"}
	if live == nil || live.GroupVersionKind().Group != api.Group || slices.Contains(unasked, live.GetKind()) {
		return nil
	}
	if err := d.allowed(ctx, live, "delete"); err != nil {
		return err
	}
	return refusal(client.IgnoreNotFound(d.client.Delete(ctx, live.DeepCopy(), client.DryRunAll)))
}

// apply asks by server-side apply; the object becomes what the server answers. Who applied a field
// by another program of the same name may change it.
func (d dryRun) apply(ctx context.Context, u *unstructured.Unstructured) error {
	manager := fieldManager(d.plan)
	opts := []client.ApplyOption{client.FieldOwner(manager), client.DryRunAll}
	if d.plan.Spec.Conflicts == api.ConflictsTake {
		opts = append(opts, client.ForceOwnership)
	}
	send := func() error { return d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...) }
	err := send()
	if plans.ConflictsWith(err, manager) {
		opts = append(opts, client.ForceOwnership)
		err = send()
	}
	return refusal(err)
}

// refusal marks an error that is the server's word on the object, and not that the server could not
// be asked.
func refusal(err error) error {
	var status apierrors.APIStatus
	code := int32(0)
	if errors.As(err, &status) {
		code = status.Status().Code
	}
	refused := code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
	if err == nil || !refused && !meta.IsNoMatchError(err) {
		return err
	}
	return propose.Refused(err)
}
