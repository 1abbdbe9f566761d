package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/cli/screen"
	"github.com/holdfast-storage/holdfast/driver"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// answerIn is how long a storage system that a person asks about is waited for: a plan without its word would leave things out.
const answerIn = 5 * time.Second

// leaderAnswerIn is how long the leader waits for one that did not answer the last time. It asks again soon, and whoever asks it for the restart of a daemon,
// for which it asks twice, listens for ten seconds (firstWordTime).
const leaderAnswerIn = time.Second

// drivers are the storage systems that this program knows. One that does not answer is waited for so long, and what is missing as long as w says.
func drivers(answer time.Duration, w waits.Waits) []engine.Driver {
	return driver.All(driver.Options{FirstAnswer: answer, Waits: w})
}

type planOptions struct {
	files  kube.Files
	delete []string
	dryRun bool
	force  bool
	// whenPossible keeps also what is refused as things are.
	whenPossible bool
	output       string
	colour       screen.Colour
	// exitCode has changes be told by the exit code.
	exitCode bool
}

func newPlan(g *globals) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f FILE | plan --delete KIND/NAME",
		Short: "Show and keep a plan of what applying or deleting would do",
		Long: `Shows what applying the files would change: the objects, then daemons by host, devices by model and
serial number, and commands to the storage system, in order, each with its risk. Nothing is changed.

The plan is kept for a week. 'holdfast apply --plan NAME' does exactly what it shows, or refuses and
lists what has changed since.

With --exit-code the exit code is 5 if the plan has changes, and 0 if everything is there already.`,
		Example: `  holdfast plan -f cluster.yaml
  holdfast apply --plan plan-7f3a9c --wait
  holdfast plan --delete storagecluster/ceph
  holdfast plan -f . --dry-run --exit-code
  holdfast apply --plan "$(holdfast plan -f cluster.yaml -o name)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.plan(cmd.Context(), o) },
	}
	f := cmd.Flags()
	o.files.Bind(f, "with objects")
	f.StringSliceVar(&o.delete, "delete", nil, "an object to delete, as KIND/NAME, instead of files to apply; may be repeated")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the plan, and do not store it")
	f.BoolVar(&o.force, "force-conflicts", false, forceUsage)
	f.BoolVar(&o.whenPossible, "when-possible", false, whenPossibleUsage)
	f.StringVarP(&o.output, "output", "o", "",
		"json or yaml: print the Plan, and do not store it; name: store it, and print its name alone")
	o.colour.Bind(f)
	f.BoolVar(&o.exitCode, "exit-code", false, "end with exit code 5 if there are changes")
	return cmd
}

const forceUsage = "take over fields that another user has applied"

func conflictsFor(force bool) api.PlanConflicts {
	if force {
		return api.ConflictsTake
	}
	return api.ConflictsRefuse
}

func (g *globals) plan(ctx context.Context, o planOptions) error {
	name := o.output == "name"
	switch {
	case !slices.Contains([]string{"", "json", "yaml", "name"}, o.output):
		return &exitError{exitUsage, fmt.Errorf("unknown output format -o %s: use name, json or yaml", o.output)}
	case name && o.dryRun:
		return &exitError{
			exitUsage,
			errors.New("with --dry-run no plan is stored, so it has no name: leave out one of the two"),
		}
	}
	w, operation, targets, err := g.planTargets(ctx, o)
	if err != nil {
		return err
	}
	w.refusals = refusalsFor(o.whenPossible)
	p, err := g.propose(ctx, w, operation, targets)
	if err != nil {
		return err
	}
	if o.output == "" {
		screen.Report(g.out, o.colour, p.Report)
	}
	if operation == api.PlanApply {
		if err := p.judge(w, g.err); err != nil {
			return err
		}
		if err := p.refusedFor(p.notes(api.NoteActionRefused)); err != nil {
			return err
		}
	}
	if o.output != "" && !name {
		if err := g.printPlan(p, o.output); err != nil {
			return err
		}
		if p.silence() != "" { // a Plan holds no notes
			fmt.Fprintf(g.err, "warning: %s: the plan is incomplete\n", printable(p.silence()))
		}
	}
	if o.output != "" && !name || o.dryRun {
		return cmp.Or(p.unlessPossible(w, ""), p.changes(o))
	}
	if err := p.unkept(); err != nil {
		return err
	}
	plan, err := g.keep(ctx, w, p)
	if err != nil {
		return err
	}
	if err := p.unlessPossible(w, g.nextCommand(plan)); err != nil {
		return err
	}
	if name {
		fmt.Fprintln(g.out, plan.Name)
	} else {
		fmt.Fprintf(g.out, "apply it with: %s\n", g.nextCommand(plan))
	}
	return p.changes(o)
}

// changes carries the exit code for changes, where that is asked for.
func (p *proposal) changes(o planOptions) error {
	if !o.exitCode || p.Count == 0 {
		return nil
	}
	return &exitError{exit.Changes, fmt.Errorf("the plan has %d changes", p.Count)}
}

// planTargets reads what is to be applied or deleted, and has the server check it.
func (g *globals) planTargets(ctx context.Context, o planOptions) (*writer, api.PlanOperation, []target, error) {
	if len(o.delete) > 0 {
		if o.files.Given() {
			return nil, "", nil, &exitError{exitUsage, errors.New("use either -f FILE or --delete KIND/NAME")}
		}
		var objects []object
		for _, text := range o.delete {
			kind, name, ok := strings.Cut(text, "/")
			if !ok {
				return nil, "", nil, &exitError{exitUsage, fmt.Errorf("--delete %s: use KIND/NAME, such as storagecluster/ceph", text)}
			}
			found, err := g.named([]string{kind, name}, kube.Files{}, "")
			if err != nil {
				return nil, "", nil, err
			}
			objects = append(objects, found...)
		}
		w, err := g.writer(o.force)
		if err != nil {
			return nil, "", nil, err
		}
		targets, err := w.present(ctx, objects)
		if err == nil && len(targets) == 0 {
			err = &exitError{exitRefused, fmt.Errorf("%s does not exist", strings.Join(o.delete, ", "))}
		}
		if err == nil {
			err = w.checkDeletes(ctx, targets)
		}
		return w, api.PlanDelete, targets, err
	}
	objects, err := readManifests(o.files, g.in, g.namespace)
	if err != nil {
		return nil, "", nil, err
	}
	w, err := g.writer(o.force)
	if err != nil {
		return nil, "", nil, err
	}
	if _, err := manifestOf(api.PlanApply, objects); err != nil {
		return nil, "", nil, err
	}
	targets, err := w.checkAll(ctx, objects)
	return w, api.PlanApply, targets, err
}

// writer makes a writer in the name of this user.
func (g *globals) writer(force bool) (*writer, error) {
	c, err := g.client()
	if err != nil {
		return nil, err
	}
	owner, err := g.owner()
	if err != nil {
		return nil, err
	}
	return &writer{client: c, owner: owner, conflicts: conflictsFor(force)}, nil
}

// present returns those of the objects that are there, as targets to delete.
func (w *writer) present(ctx context.Context, objects []object) ([]target, error) {
	var targets []target
	for _, o := range objects {
		live, err := w.read(ctx, o)
		if err != nil {
			return nil, explain(o, err)
		}
		if live != nil {
			targets = append(targets, target{object: o, live: live})
		}
	}
	return targets, nil
}

// nextCommand is what carries a plan out.
func (g *globals) nextCommand(plan *api.Plan) string {
	verb := "apply"
	if plan.Spec.Operation == api.PlanDelete {
		verb = "delete"
	}
	text := "holdfast " + verb + " --plan " + plan.Name
	if plan.Namespace != defaultNamespace {
		text += " -n " + plan.Namespace
	}
	return text
}

func (g *globals) printPlan(p *proposal, output string) error {
	if err := p.keepable(); err != nil {
		return err
	}
	plan := p.plan.DeepCopy()
	plan.APIVersion, plan.Kind, plan.ManagedFields = api.GroupVersion.String(), "Plan", nil
	data, err := json.MarshalIndent(plan, "", "  ")
	if err == nil && output == "yaml" {
		data, err = words.JSONToYAML(data)
	} else {
		data = []byte(words.JSON(string(data)))
	}
	if err != nil {
		return fmt.Errorf("while printing the plan: %w", err)
	}
	fmt.Fprintln(g.out, strings.TrimSpace(string(data)))
	return nil
}

// requireNamed refuses what destroys data unless a plan was named: the plan is shown and kept.
func (g *globals) requireNamed(ctx context.Context, w *writer, p *proposal) error {
	if !p.destroys() {
		g.dropAsked()
		return nil
	}
	screen.Report(g.out, screen.Auto, p.Report)
	plan, err := g.keep(ctx, w, p)
	if err != nil {
		return err
	}
	command := g.nextCommand(plan)
	if len(p.refused()) > 0 && p.operation == api.PlanDelete { // it was said that it may wait, which the plan does not hold
		command += " --when-possible"
	}
	return &exitError{exitRefused, fmt.Errorf("this destroys data, so nothing was changed: check the plan above; if it is what you want, "+
		"name it with: %s", command)}
}

// checkAll has the server check every object.
func (w *writer) checkAll(ctx context.Context, objects []object) ([]target, error) {
	var targets []target
	var all []error
	code := exitRefused
	for _, o := range objects {
		t, err := w.check(ctx, o)
		if err != nil {
			all = append(all, err)
			var coded *exitError
			if !errors.As(err, &coded) && !isRefusal(err) {
				code = exitFailed
				break
			}
			continue
		}
		targets = append(targets, t)
	}
	if len(all) > 0 {
		return nil, &exitError{code, fmt.Errorf("nothing was changed:\n%w", errors.Join(all...))}
	}
	return targets, nil
}
