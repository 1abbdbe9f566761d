package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
)

const (
	// askedFor is how long a Plan that nobody has kept stays, where this program cannot remove it
	// itself.
	askedFor = "10m"
	// leaderLooks is after how long it is said that the leader has not answered yet.
	leaderLooks = 3 * time.Second
)

// answerWithin is how long the leader's answer is waited for: a change of leaders, and then the
// time that the answer may take. Tests without a leader set it.
var answerWithin = 75 * time.Second

// ask has the leader say what would come of a request, by a Plan that it answers.
func (g *globals) ask(ctx context.Context, w *writer, p *proposal) error {
	manifest, err := manifestOf(p.operation, objectsOf(p.targets))
	if err != nil {
		return err
	}
	plan := &api.Plan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.namespace, Annotations: map[string]string{api.AnnotationExpiresAfter: askedFor},
		},
		Spec: api.PlanSpec{
			Operation: p.operation, Conflicts: w.conflicts, Refusals: w.refusals, Manifest: manifest, FieldManager: w.owner,
		},
	}
	p.plan = plan
	if err := g.createPlan(ctx, w, p); err != nil {
		return err
	}
	err = g.awaitAnswer(ctx, w.client, plan)
	if plan.Status.State == api.PlanFailed && p.operation == api.PlanApply {
		_, again := w.checkAll(ctx, objectsOf(p.targets)) // which says more of a conflict
		err = cmp.Or(again, err)
	}
	p.PlanProposal = plan.Status.Proposal
	return err
}

// createPlan makes the plan of a proposal, and before it the Secret that goes with it, with a name
// that no other one has.
func (g *globals) createPlan(ctx context.Context, w *writer, p *proposal) error {
	const tries = 5 // names are short, and one may be taken
	for i := 0; ; i++ {
		p.plan.Name, p.plan.ResourceVersion = planName([]byte(p.plan.Spec.Manifest)), ""
		err := g.tryCreate(ctx, w, p)
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) || i == tries {
			return fmt.Errorf("while requesting a plan from the leader: %w", err)
		}
	}
}

func (g *globals) tryCreate(ctx context.Context, w *writer, p *proposal) error {
	with, err := secretsOf(p, p.plan)
	if err != nil {
		return err
	}
	make := func(o client.Object) error {
		return withDeadline(ctx, func(ctx context.Context) error {
			return w.client.Create(ctx, o, client.FieldOwner(w.owner))
		})
	}
	if with != nil {
		if err := make(with); err != nil {
			return err
		}
		g.asked = append(g.asked, with)
	}
	if err := make(p.plan); err != nil {
		return err
	}
	g.asked = append(g.asked, p.plan.DeepCopy())
	return nil
}

// awaitAnswer waits until the leader has answered a plan.
func (g *globals) awaitAnswer(ctx context.Context, c client.Client, plan *api.Plan) error {
	limit := answerWithin + propose.TimeFor(plan.Spec.Manifest)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	told := time.AfterFunc(leaderLooks, func() { fmt.Fprintln(g.err, "waiting for the plan of the leader …") })
	defer told.Stop()
	var last error
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := withDeadline(ctx, func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(plan), plan)
		})
		switch {
		case ctx.Err() != nil:
		case err != nil && final(err):
			return fmt.Errorf("while waiting for the plan of the leader: %w", err)
		case err != nil: // the server that was asked may be the one that ends
			last = err
		case plan.Status.Proposal != nil:
			return nil
		case plan.Status.State == api.PlanFailed:
			return &exitError{exitRefused, fmt.Errorf("nothing was changed: %s", plan.Status.Message)}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New("interrupted; nothing was changed")
			}
			if last != nil {
				return &exitError{exitFailed, fmt.Errorf(
					"cannot read the leader's plan within %s; nothing was changed: %w", limit, last)}
			}
			return &exitError{exitFailed, fmt.Errorf("the leader made no plan within %s; nothing was changed: no server "+
				"leads, or the leader has an older version; see 'holdfast doctor'", limit)}
		}
	}
}

// final says whether an API server means what it answers: another try would not change it.
func final(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err)
}

// keep keeps the plan of a proposal for a week.
func (g *globals) keep(ctx context.Context, w *writer, p *proposal) (*api.Plan, error) {
	if err := p.keepable(); err != nil {
		return nil, err
	}
	patch := `{"metadata":{"annotations":{"` + api.AnnotationExpiresAfter + `":null}}}`
	kept := p.plan.DeepCopy()
	err := withDeadline(ctx, func(ctx context.Context) error {
		return w.client.Patch(ctx, kept, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(w.owner))
	})
	if err != nil {
		return nil, fmt.Errorf("while storing the plan: %w", err)
	}
	g.asked = slices.DeleteFunc(g.asked, func(o client.Object) bool { return o.GetUID() == kept.UID })
	p.plan = kept
	return kept, nil
}

// dropAsked removes the plans that only asked. One that cannot be removed now the leader removes
// later.
func (g *globals) dropAsked() {
	if len(g.asked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if c, err := g.client(); err == nil {
		for _, o := range g.asked {
			uid := o.GetUID()
			_ = c.Delete(ctx, o, client.Preconditions{UID: &uid})
		}
	}
	g.asked = nil
}
