package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// maxPlan is how large a Plan may be, in bytes: etcd takes 1.5 MiB in one request.
const maxPlan = 1 << 20

// newPlanObject makes the Plan of a proposal.
func newPlanObject(namespace string, p *proposal, w *writer) (*api.Plan, error) {
	manifest, err := manifestOf(p)
	if err != nil {
		return nil, err
	}
	plan := &api.Plan{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "Plan"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec:       p.spec(manifest, w),
	}
	plan.Spec.Requester = w.owner
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("while making the plan: %w", err)
	}
	if len(data) > maxPlan {
		return nil, &exitError{exitRefused, fmt.Errorf("the plan has %d KiB, and at most %d KiB can be kept: plan fewer objects at a time",
			len(data)>>10, maxPlan>>10)}
	}
	plan.Name = planName(data)
	return plan, nil
}

// planName is short enough to be typed. It is made from what the plan says and a random number, so that a name that was noted
// down never comes to mean another plan.
func planName(content []byte) string {
	hash := sha256.New()
	hash.Write(content)
	hash.Write([]byte(rand.Text()))
	return "plan-" + hex.EncodeToString(hash.Sum(nil)[:3])
}

// manifestOf is what was given, as YAML documents; of what is to be deleted the names alone.
func manifestOf(p *proposal) (string, error) {
	var docs []string
	for _, t := range p.targets {
		if t.GetKind() == "Secret" && t.GetAPIVersion() == "v1" {
			return "", &exitError{exitRefused, fmt.Errorf("%s: a plan cannot hold a Secret, because others may read plans: apply it by itself", t)}
		}
		content := t.Object
		if p.Operation == api.PlanDelete {
			content = map[string]any{"apiVersion": t.GetAPIVersion(), "kind": t.GetKind(), "metadata": map[string]any{"name": t.GetName()}}
			if t.GetNamespace() != "" {
				content["metadata"].(map[string]any)["namespace"] = t.GetNamespace()
			}
		}
		doc, err := yaml.Marshal(content)
		if err != nil {
			return "", fmt.Errorf("while making the plan: %w", err)
		}
		docs = append(docs, string(doc))
	}
	return strings.Join(docs, "---\n"), nil
}

// keep stores the plan of a proposal.
func (g *globals) keep(ctx context.Context, w *writer, p *proposal) (*api.Plan, error) {
	const tries = 5 // names are short, and one may be taken
	for i := 0; ; i++ {
		plan, err := newPlanObject(g.namespace, p, w)
		if err != nil {
			return nil, err
		}
		err = withDeadline(ctx, func(ctx context.Context) error { return w.client.Create(ctx, plan, client.FieldOwner(w.owner)) })
		if err == nil {
			return plan, nil
		}
		if !apierrors.IsAlreadyExists(err) || i == tries {
			return nil, fmt.Errorf("while keeping the plan: %w", err)
		}
	}
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
		return refuse("plan %s was carried out already (%s): see how far it is with 'holdfast status --watch', or make another one with 'holdfast plan'", name, plan.Status.Message)
	case plan.Status.State == api.PlanStale:
		return refuse("plan %s is stale: %s\nMake another one with 'holdfast plan'", name, plan.Status.Message)
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
	return &exitError{exitRefused, fmt.Errorf("there is no plan %s here (plans are removed after a week; 'holdfast get plans' lists them)", name)}
}

// markPlan writes what became of a plan. It fails when somebody else has written to the plan meanwhile.
func markPlan(ctx context.Context, c client.Client, plan *api.Plan, state api.PlanState, message string) error {
	now := metav1.Now()
	const most = 2048
	plan.Status = api.PlanStatus{State: state, Message: strings.ToValidUTF8(message[:min(len(message), most)], ""), Time: &now}
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Status().Update(ctx, plan) })
	if apierrors.IsConflict(err) {
		return &exitError{exitRefused, fmt.Errorf("plan %s is being applied by somebody else at this moment", plan.Name)}
	}
	if err != nil {
		return fmt.Errorf("while writing the state of plan %s: %w", plan.Name, err)
	}
	return nil
}
