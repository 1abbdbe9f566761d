package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/propose"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// proposal is what would come of applying or deleting some objects, as this program looked at them.
type proposal struct {
	*propose.Proposal
	targets []target
}

// propose asks the drivers what they would do if the objects were applied or deleted, and changes
// nothing. It is what the leader will ask itself; the leader's answer counts.
func (g *globals) propose(ctx context.Context, c client.Client, operation api.PlanOperation, targets []target) (*proposal, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	objects, err := bare.ReadObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	home := propose.Home{
		Objects: objects, Drivers: drivers(answerIn, g.waits), Kinds: actionKinds(), Now: time.Now(),
		Secrets: func(namespace string) engine.SecretReader { return &bare.Secrets{Reader: c, Namespace: namespace} },
	}
	r := propose.Request{Operation: operation}
	for _, t := range targets {
		r.Targets = append(r.Targets, propose.Target{Unstructured: t.Unstructured, Live: t.live, After: t.after})
	}
	p, err := propose.Make(ctx, home, r)
	if err != nil {
		return nil, err
	}
	return &proposal{p, targets}, nil
}

// spec is the proposal as a Plan keeps it.
func (p *proposal) spec(manifest string, w *writer) api.PlanSpec {
	s := api.PlanSpec{Operation: p.Operation, Conflicts: w.conflicts, Refusals: w.refusals, Manifest: manifest}
	p.Store(&s)
	return s
}

// refusal is the error that says why nothing can be done.
func (p *proposal) refusal() error { return p.refusedFor(p.Refused) }

func (p *proposal) refusedFor(reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	if p.Heir != nil {
		return &exitError{exitRefused, fmt.Errorf("nothing was changed:\n%w", hosts.Unfit(p.Host, p.Heir, reasons))}
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
	return fmt.Errorf("%w\n'%s' deletes it all the same: what cannot be done now is done as soon as it can be", err, strings.TrimSpace(command+" --when-possible"))
}

// unlessPossible is deleteRefusal, unless nothing is deleted or it was said that it may wait.
func (p *proposal) unlessPossible(w *writer, command string) error {
	if p.Operation != api.PlanDelete || w.refusals == api.RefusalsDeclare {
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
	for _, text := range p.Refused {
		fmt.Fprintf(g.out, "refused as things are: %s\n", text)
	}
	return nil
}

// unkept is the error of a plan that is shown and not kept, because it would bind to what nobody
// knows.
func (p *proposal) unkept() error {
	if len(p.Silent) == 0 {
		return nil
	}
	unplanned := "holdfast apply -f FILE"
	if p.Operation == api.PlanDelete {
		unplanned = "holdfast delete KIND NAME"
	}
	return &exitError{exitRefused, fmt.Errorf("no plan is kept, because %s, so nobody knows all that would happen: 'holdfast status' says what is amiss. "+
		"Plan again when it answers, or do it without a plan: '%s'", p.Silence(), unplanned)}
}

// unsure refuses a plan that was made when the storage system answered, while it does not: what
// would happen now nobody can compare. The plan is good again when it answers. One that was made in
// silence, for data that is destroyed is named in any case, says no less than it did.
func (p *proposal) unsure(plan *api.Plan) error {
	known := func(cluster, _ string) bool { return plans.MadeInSilence(&plan.Spec, cluster) }
	if maps.DeleteFunc(p.Silent, known); len(p.Silent) == 0 {
		return nil
	}
	return &exitError{exitRefused, fmt.Errorf("%s, so nobody knows whether what plan %s tells would happen, and nothing was changed: "+
		"'holdfast status' says what is amiss. Name the plan again when it answers", p.Silence(), plan.Name)}
}

// whenPossibleUsage is of 'apply' and 'plan'.
const whenPossibleUsage = "declare also what is refused as things are, such as a StorageNode whose host has yet to join: it is carried out as soon as it can be"

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
		for _, text := range p.Refused {
			fmt.Fprintf(out, "warning: refused as things are: %s\n", printable(text))
		}
	case err != nil && p.Early:
		return fmt.Errorf("%w\nIf the machine has yet to join, '--when-possible' declares it all the same: what cannot be done now is done as soon as it can be", err)
	case err != nil:
		return err
	}
	for _, text := range p.Hostless {
		fmt.Fprintf(out, "warning: %s\n", printable(text))
	}
	return nil
}

func decisionText(d api.Decision) string { return d.Object + ": " + d.Message }
