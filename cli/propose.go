package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// proposal is what would come of applying or deleting some objects, by the word of the leader.
type proposal struct {
	*api.PlanProposal
	operation api.PlanOperation
	targets   []target
	client    client.Client
	// plan is the Plan that the leader answered.
	plan *api.Plan
}

// propose has the leader find out what would come of it if the objects were applied or deleted.
// Nothing is changed.
func (g *globals) propose(ctx context.Context, w *writer, operation api.PlanOperation, targets []target) (*proposal, error) {
	p := &proposal{operation: operation, targets: targets, client: w.client}
	return p, g.ask(ctx, w, p)
}

// notes are the messages of what the leader notes for some reasons.
func (p *proposal) notes(reasons ...api.PlanNoteReason) (all []string) {
	for _, n := range p.Notes {
		if slices.Contains(reasons, n.Reason) {
			all = append(all, n.Message)
		}
	}
	return all
}

// refused says why it cannot be done.
func (p *proposal) refused() []string { return p.notes(api.NoteHostAwaited, api.NoteRefused) }

// destroys says whether data is destroyed that nobody has named or asked for before.
func (p *proposal) destroys() bool { return len(p.Destroys) > 0 }

// silence tells of all storage systems that do not answer.
func (p *proposal) silence() string { return strings.Join(p.notes(api.NoteNoAnswer), ", ") }

// witness says who changed an object of the basis, or that it is gone.
func (p *proposal) witness(ctx context.Context) func(object string) plans.Witness {
	return func(object string) plans.Witness {
		parts := strings.Split(object, "/")
		for kind := range p.client.Scheme().KnownTypes(api.GroupVersion) {
			if strings.ToLower(kind) != parts[0] {
				continue
			}
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
			key := client.ObjectKey{Name: parts[len(parts)-1]}
			if len(parts) == 3 {
				key.Namespace = parts[1]
			}
			read := func(ctx context.Context) error { return p.client.Get(ctx, key, u) }
			switch err := withDeadline(ctx, read); {
			case apierrors.IsNotFound(err):
				return plans.Witness{Gone: true}
			case err == nil:
				return plans.Witness{Changed: plans.WhoChanged(u)}
			}
		}
		return plans.Witness{}
	}
}

// refusal is the error that says why nothing can be done.
func (p *proposal) refusal() error { return p.refusedFor(p.refused()) }

func (p *proposal) refusedFor(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	all := make([]error, len(reasons))
	for i, text := range reasons {
		all[i] = errors.New(text)
	}
	return &exitError{exitRefused, fmt.Errorf("nothing was changed:\n%w", errors.Join(all...))}
}

// deleteRefusal is the error that says why nothing can be deleted, and how it is all the same: the
// command with --when-possible.
func (p *proposal) deleteRefusal(command string) error {
	err := p.refusal()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n'%s' deletes it as soon as possible", err, strings.TrimSpace(command+" --when-possible"))
}

// unlessPossible is deleteRefusal, unless nothing is deleted or it was said that it may wait.
func (p *proposal) unlessPossible(w *writer, command string) error {
	if p.operation != api.PlanDelete || w.refusals == api.RefusalsDeclare {
		return nil
	}
	return p.deleteRefusal(command)
}

// deletable says why nothing can be deleted; who says that it may wait until it can be is told what
// waits.
func (g *globals) deletable(p *proposal, whenPossible bool) error {
	if !whenPossible {
		return p.deleteRefusal("")
	}
	for _, text := range p.refused() {
		fmt.Fprintf(g.out, "refused for now: %s\n", text)
	}
	return nil
}

// unkept is the error of a plan that is shown and not kept, because it would bind to what nobody
// knows.
func (p *proposal) unkept() error {
	if p.silence() == "" {
		return nil
	}
	unplanned := "holdfast apply -f FILE"
	if p.operation == api.PlanDelete {
		unplanned = "holdfast delete KIND NAME"
	}
	return &exitError{exitRefused, fmt.Errorf("no plan is kept: %s, so the plan is incomplete. See 'holdfast status'; "+
		"plan again when it answers, or continue without a plan: '%s'", p.silence(), unplanned)}
}

// unsure refuses a plan that was made when the storage system answered, while it does not: what
// would happen now nobody can compare. The plan is good again when it answers. One that was made in
// silence, for data that is destroyed is named in any case, says no less than it did.
func (p *proposal) unsure(plan *api.Plan) error {
	var silent []string
	for _, n := range p.Notes {
		if n.Reason == api.NoteNoAnswer && !plans.MadeInSilence(plan.ProposalOf(), n.Object) {
			silent = append(silent, n.Message)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return &exitError{exitRefused, fmt.Errorf("%s, so plan %s cannot be checked, and nothing was changed. "+
		"See 'holdfast status'; name the plan again when it answers", strings.Join(silent, ", "), plan.Name)}
}

// whenPossibleUsage is of 'apply' and 'plan'.
const whenPossibleUsage = "declare objects although they are refused now, such as a StorageNode whose host has not joined: they are carried out as soon as possible"

func refusalsFor(whenPossible bool) api.PlanRefusals {
	if whenPossible {
		return api.RefusalsDeclare
	}
	return api.RefusalsRefuse
}

// judge refuses what is refused, unless it is to be declared all the same, and tells of what has no
// host.
func (p *proposal) judge(w *writer, out io.Writer) error {
	err := p.refusal()
	switch {
	case err != nil && w.refusals == api.RefusalsDeclare:
		for _, text := range p.refused() {
			fmt.Fprintf(out, "warning: refused for now: %s\n", printable(text))
		}
	case err != nil && len(p.notes(api.NoteHostAwaited)) > 0:
		return fmt.Errorf("%w\nIf the machine will join later, use '--when-possible': it is carried out as soon as possible", err)
	case err != nil:
		return err
	}
	for _, text := range p.notes(api.NoteNoHost) {
		fmt.Fprintf(out, "warning: %s\n", printable(text))
	}
	return nil
}

func decisionText(d api.Decision) string { return d.Object + ": " + d.Message }
