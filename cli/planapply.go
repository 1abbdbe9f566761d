package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// bind is what a person says of a plan: its name, by which command it is done, and whether what is to be deleted may wait until it can be.
type bind struct {
	name         string
	operation    api.PlanOperation
	whenPossible bool
}

// bindPlan reads a plan, looks at the world again, and returns what is to be done: exactly what the plan tells, or an error that says
// what has moved. A plan that was begun and cut off is gone on with.
func (g *globals) bindPlan(ctx context.Context, w *writer, b bind) (*api.Plan, []target, error) {
	plan, err := g.open(ctx, w.client, b.name, b.operation)
	if err != nil {
		return nil, nil, err
	}
	w.conflicts, w.refusals, w.exact = plan.Spec.Conflicts, plan.Spec.Refusals, true
	objects, err := parseManifest([]byte(plan.Spec.Manifest), "plan "+b.name, g.namespace)
	if err != nil {
		return nil, nil, err
	}
	targets, err := w.targets(ctx, objects, b.operation)
	if err != nil {
		return nil, nil, err
	}
	p, err := g.propose(ctx, w, b.operation, targets)
	if err != nil {
		return nil, nil, err
	}
	begun := begun(plan, p)
	if !begun {
		if err := p.unsure(plan); err != nil {
			return nil, nil, err
		}
	}
	if moved := movedSince(ctx, plan, p, begun); len(moved) > 0 {
		return nil, nil, outdated(ctx, w, plan, moved)
	}
	// What was refused when the plan was made is no move: it stays refused until it can be, or somebody says that it may wait.
	if b.operation == api.PlanDelete && !begun {
		if err := g.deletable(p, b.whenPossible || w.refusals == api.RefusalsDeclare); err != nil {
			return nil, nil, err
		}
	}
	g.dropAsked()
	return plan, targets, markPlan(ctx, w.client, plan, api.PlanApplying, "being carried out by "+w.owner)
}

// outdated is the error that says what has moved since a plan was made. One that was not begun is not looked at again.
func outdated(ctx context.Context, w *writer, plan *api.Plan, moved []string) error {
	text := strings.Join(moved, "\n  ")
	if plan.Status.State != api.PlanApplying {
		if err := markPlan(ctx, w.client, plan, api.PlanStale, text); err != nil {
			return err
		}
	}
	return &exitError{exitRefused, fmt.Errorf("plan %s is out of date; nothing was changed. Since then:\n  %s\nMake another plan with 'holdfast plan'", plan.Name, text)}
}

// targets looks at the objects of a plan as they are now.
func (w *writer) targets(ctx context.Context, objects []object, operation api.PlanOperation) ([]target, error) {
	if operation == api.PlanApply {
		return w.checkAll(ctx, objects)
	}
	var targets []target
	for _, o := range objects {
		live, err := w.read(ctx, o)
		if err != nil {
			return nil, explain(o, err)
		}
		targets = append(targets, target{object: o, live: live})
	}
	return targets, nil
}

// movedSince says what is not as it was when the plan was made. Of a plan that was begun each object has to be as it was then, or as the plan wants
// it: what came of those that are written has moved the world. Data that is destroyed now, and was not in the plan, nobody has named.
func movedSince(ctx context.Context, plan *api.Plan, p *proposal, begun bool) []string {
	was := plan.ProposalOf()
	if begun {
		return slices.Concat(movedMeanwhile(ctx, plan, p), plans.UnnamedData(was, p.PlanProposal))
	}
	moved := plans.BasisOf(p.PlanProposal).Moved(was, p.witness(ctx))
	if len(moved) > 0 {
		return moved
	}
	moved = plans.Differs(was, p.PlanProposal)
	if len(moved) == 0 && p.operation == api.PlanApply && plan.Spec.Refusals != api.RefusalsDeclare {
		for _, text := range p.refused() {
			moved = append(moved, "it would be refused now: "+text)
		}
	}
	return moved
}

// begun says whether anything of a plan is written or deleted. Between the mark on it that it is being applied and the first write whoever applies it
// may be cut off, for days; then it is looked at as if it were new.
func begun(plan *api.Plan, p *proposal) bool {
	return plan.Status.State == api.PlanApplying && slices.ContainsFunc(p.targets, func(t target) bool {
		return t.done() && t.moved(plan.ProposalOf())
	})
}

// done says whether an object is as it is wanted.
func (t target) done() bool {
	if t.after == nil {
		return t.live == nil || t.live.GetDeletionTimestamp() != nil
	}
	return t.live != nil && len(plans.Differences(plans.Fields(t.live), plans.Fields(t.after))) == 0
}

// moved says whether an object is not as it was when a plan was made, so that one that is done is not merely one that the plan changes nothing of.
func (t target) moved(was *api.PlanProposal) bool {
	name, now := plans.NameOf(t.Unstructured), plans.ObjectFacts(t.live)
	i := slices.IndexFunc(was.Basis, func(b api.PlanBasis) bool { return b.Object == name })
	switch {
	case i < 0:
		return true // there was no room for it
	case t.after == nil:
		return was.Basis[i].UID != ""
	}
	return was.Basis[i].UID != now.UID || was.Basis[i].Digest != now.Digest()
}

func movedMeanwhile(ctx context.Context, plan *api.Plan, p *proposal) []string {
	own := plans.Basis{}
	for _, t := range p.targets {
		if !t.done() {
			own[plans.NameOf(t.Unstructured)] = plans.ObjectFacts(t.live)
		}
	}
	was := *plan.ProposalOf()
	was.Basis = slices.DeleteFunc(slices.Clone(was.Basis), func(b api.PlanBasis) bool {
		_, ok := own[b.Object]
		return !ok
	})
	return own.Moved(&was, p.witness(ctx))
}
