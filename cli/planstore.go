package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
)

// planName is short enough to be typed. It is made from what the plan says and a random number, so that a name that was noted
// down never comes to mean another plan.
func planName(content []byte) string {
	hash := sha256.New()
	hash.Write(content)
	hash.Write([]byte(rand.Text()))
	return "plan-" + hex.EncodeToString(hash.Sum(nil)[:3])
}

// manifestOf is the manifest of a plan.
func manifestOf(operation api.PlanOperation, objects []object) (string, error) {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = o.asRead().Unstructured
	}
	manifest, err := propose.Manifest(operation, all)
	if err != nil {
		return "", &exitError{exitRefused, fmt.Errorf("nothing was changed: %w", err)}
	}
	return manifest, nil
}

// keepable says why a plan cannot be kept.
func (p *proposal) keepable() error {
	for _, t := range p.targets {
		if propose.IsSecret(t.Unstructured) {
			return &exitError{exitRefused, fmt.Errorf("%s: a plan cannot contain a Secret, because other users may read plans: apply the Secret separately", t)}
		}
	}
	return nil
}

// secretsOf is the Secret that goes with a plan, with those of its manifest; nil where there are none.
func secretsOf(p *proposal, plan *api.Plan) (*corev1.Secret, error) {
	data := map[string][]byte{}
	for _, t := range p.targets {
		if p.operation == api.PlanDelete || !propose.IsSecret(t.Unstructured) {
			continue
		}
		text, err := json.Marshal(t.Object)
		if err != nil {
			return nil, fmt.Errorf("while making the plan: cannot write %s", t) // the cause may show what is secret
		}
		data[propose.SecretEntry(t.Unstructured)] = text
	}
	if len(data) == 0 {
		return nil, nil
	}
	if err := propose.SecretsFit(data); err != nil {
		return nil, &exitError{exitRefused, fmt.Errorf("nothing was changed: %w", err)}
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: plan.Namespace, Name: plan.Name}, Type: api.SecretTypePlan, Data: data,
	}, nil
}

// open reads a plan that can still be carried out.
func (g *globals) open(ctx context.Context, c client.Client, name string, operation api.PlanOperation) (*api.Plan, error) {
	plan := &api.Plan{}
	key := types.NamespacedName{Namespace: g.namespace, Name: name}
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, key, plan) })
	if apierrors.IsNotFound(err) {
		return nil, g.noSuchPlan(ctx, c, name)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading plan %s: %w", name, err)
	}
	refuse := func(format string, args ...any) (*api.Plan, error) {
		return nil, &exitError{exitRefused, fmt.Errorf(format, args...)}
	}
	switch {
	case plan.Status.State == api.PlanApplied:
		return refuse("plan %s was already carried out (%s): follow it with 'holdfast status --watch', or make another one with 'holdfast plan'", name, plan.Status.Message)
	case plan.Status.State == api.PlanStale:
		return refuse("plan %s is stale: %s\nMake another one with 'holdfast plan'", name, plan.Status.Message)
	case plan.ProposalOf() == nil && plan.Status.State == api.PlanFailed:
		return refuse("plan %s failed: %s", name, plan.Status.Message)
	case plan.ProposalOf() == nil:
		return refuse("the leader has not answered plan %s yet: retry; if that does not help, see 'holdfast doctor'", name)
	case plan.Spec.Operation != operation && plan.Spec.Operation != "":
		return refuse("plan %s is for another command: %s", name, g.nextCommand(plan))
	}
	return plan, nil
}

// noSuchPlan looks for the plan in other namespaces.
func (g *globals) noSuchPlan(ctx context.Context, c client.Client, name string) error {
	var list api.PlanList
	err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list) })
	for i := range list.Items {
		if err == nil && list.Items[i].Name == name {
			return &exitError{exitRefused, fmt.Errorf("plan %s is in namespace %s, not in %s: %s", name, list.Items[i].Namespace, g.namespace, g.nextCommand(&list.Items[i]))}
		}
	}
	return &exitError{exitRefused, fmt.Errorf("plan %s does not exist here (plans are removed after a week; see "+
		"'holdfast get plans')", name)}
}

// markPlan writes what became of a plan, and leaves all else as it is, such as fields that this
// program does not know. It fails when somebody else has written to the plan since it was read.
func markPlan(ctx context.Context, c client.Client, plan *api.Plan, state api.PlanState, message string) error {
	now := metav1.Now()
	const most = 2048
	plan.Status.State, plan.Status.Message, plan.Status.Time = state, strings.ToValidUTF8(message[:min(len(message), most)], ""), &now
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": plan.UID, "resourceVersion": plan.ResourceVersion},
		"status":   map[string]any{"state": state, "message": plan.Status.Message, "time": now},
	})
	if err != nil {
		return fmt.Errorf("while writing the state of plan %s: %w", plan.Name, err)
	}
	err = withDeadline(ctx, func(ctx context.Context) error {
		return c.Status().Patch(ctx, plan, client.RawPatch(types.MergePatchType, patch))
	})
	if apierrors.IsConflict(err) {
		return &exitError{exitRefused, fmt.Errorf("plan %s is being applied by another user", plan.Name)}
	}
	if err != nil {
		return fmt.Errorf("while writing the state of plan %s: %w", plan.Name, err)
	}
	return nil
}
