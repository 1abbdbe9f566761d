package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/engine"
)

type applyOptions struct {
	files kube.Files
	plan  string
	force bool
	// whenPossible declares also what is refused as things are.
	whenPossible bool
	wait         bool
	timeout      time.Duration
	output       string
	// dryRun shows the plan, and changes nothing.
	dryRun string
	// laterRun has --wait judge everything by a run that began after all was written.
	laterRun bool
}

func newApply(g *globals) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply -f FILE | apply --plan NAME",
		Short: "Create or update objects from files",
		Long: `Applies the objects in the files. The API and the plan check all of them first. If one is refused,
nothing is changed. A change that destroys data is refused unless --plan names its plan.

A StorageNode whose nodeSelector selects no host is refused. Use --when-possible for a machine that
joins later.

With --plan, the command does exactly what 'holdfast plan' showed, or refuses and lists what has
changed since.

A field that another user applied with another value is a conflict. So is an object that another
user changes at the same moment. Conflicts are refused, and nothing is overwritten.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 refused, 4 not ready in time (the work
continues).`,
		Example: `  holdfast apply -f examples/ceph-single-host.yaml --wait
  holdfast apply --plan plan-7f3a9c --wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.dryRun != "none" {
				return dryRun(cmd.Context(), g, o)
			}
			if err := checkOutput(o.output); err != nil {
				return err
			}
			return g.apply(cmd.Context(), o)
		},
	}
	o.files.Bind(cmd.Flags(), "with objects")
	cmd.Flags().StringVar(&o.dryRun, "dry-run", "none",
		"server: show the plan, as 'holdfast plan --dry-run' does, and change nothing")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	cmd.Flags().StringVar(&o.plan, "plan", "", "the plan to carry out, from 'holdfast plan'")
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, forceUsage)
	cmd.Flags().BoolVar(&o.whenPossible, "when-possible", false, whenPossibleUsage)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "show progress, and wait until what the files declare is Ready")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long --wait waits")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json: one JSON object a line")
	return cmd
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return &exitError{exitUsage, fmt.Errorf("unknown output format -o %s: use json", output)}
	}
	return nil
}

// dryRun shows what applying the files would do. Only the server knows.
func dryRun(ctx context.Context, g *globals, o applyOptions) error {
	if o.dryRun != "server" && o.dryRun != "client" {
		return &exitError{exitUsage, fmt.Errorf("--dry-run=%s: use server or none", o.dryRun)}
	}
	if o.plan != "" || o.wait {
		return &exitError{exitUsage, errors.New("--dry-run goes with -f alone, not with --plan or --wait")}
	}
	return g.plan(ctx, planOptions{
		files: o.files, force: o.force, whenPossible: o.whenPossible, output: o.output, dryRun: true,
	})
}

func (g *globals) apply(ctx context.Context, o applyOptions) error {
	if o.plan != "" && (o.files.Given() || o.force || o.whenPossible) {
		return &exitError{exitUsage, errors.New("use either -f FILE or --plan NAME: a plan contains its files, and how " +
			"to treat conflicts and refusals")}
	}
	if o.plan != "" {
		return g.applyPlan(ctx, o)
	}
	objects, err := readManifests(o.files, g.in, g.namespace)
	if err != nil {
		return err
	}
	w, err := g.writer(o.force)
	if err != nil {
		return err
	}
	w.refusals = refusalsFor(o.whenPossible)
	if _, err := manifestOf(api.PlanApply, objects); err != nil {
		return err
	}
	targets, err := w.checkAll(ctx, objects)
	if err != nil {
		return err
	}
	p, err := g.propose(ctx, w, api.PlanApply, targets)
	if err != nil {
		return err
	}
	if err := p.judge(w, g.err); err != nil {
		return err
	}
	if err := g.requireNamed(ctx, w, p); err != nil {
		return err
	}
	if err := g.write(ctx, w, targets, o); err != nil || o.wait {
		return err // who waits for what names no cluster is refused
	}
	for _, text := range p.notes(api.NoteNoCluster) {
		fmt.Fprintf(g.err, "warning: %s\n", printable(text))
	}
	return g.firstWords(ctx, w.client, targets, o)
}

// applyPlan does exactly what a plan tells, or nothing.
func (g *globals) applyPlan(ctx context.Context, o applyOptions) error {
	w, err := g.writer(false)
	if err != nil {
		return err
	}
	plan, targets, err := g.bindPlan(ctx, w, bind{name: o.plan, operation: api.PlanApply})
	if err != nil {
		return err
	}
	wait := o.wait
	o.wait = false
	if err := g.write(ctx, w, targets, o); err != nil {
		return fmt.Errorf("%w\nPlan %s is partly carried out; to continue, run the same command again, unless another "+
			"user has changed its objects", err, plan.Name)
	}
	if err := markPlan(ctx, w.client, plan, api.PlanApplied, "by "+w.owner); err != nil {
		return err
	}
	if !wait {
		return g.firstWords(ctx, w.client, targets, o)
	}
	o.laterRun = needsRun(targets)
	return g.waitReady(ctx, w.client, objectsOf(targets), o, newPrinter(g.out, o.output))
}

func objectsOf(targets []target) []object {
	objects := make([]object, len(targets))
	for i, t := range targets {
		objects[i] = t.object
	}
	return objects
}

// write writes what was checked. Secrets come before what names them, and clusters last: what happens begins when everything that it depends on is there.
func (g *globals) write(ctx context.Context, w *writer, targets []target, o applyOptions) error {
	p := newPrinter(g.out, o.output)
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b target) int { return writeRank(a) - writeRank(b) })
	for i, t := range targets {
		verb, err := w.write(ctx, t)
		if err != nil {
			return halfWay(err, targets, i)
		}
		p.applied(t.object, verb)
	}
	if !o.wait {
		return nil
	}
	o.laterRun = needsRun(targets)
	return g.waitReady(ctx, w.client, objectsOf(targets), o, p)
}

func writeRank(t target) int {
	switch t.GetKind() {
	case "Namespace":
		return 0
	case "Secret":
		return 1
	case engine.KindCluster:
		return 3
	}
	return 2
}

// halfWay says what was written before something could not be.
func halfWay(err error, targets []target, done int) error {
	names := func(list []target) string {
		all := make([]string, len(list))
		for i, t := range list {
			all[i] = t.String()
		}
		return strings.Join(all, ", ")
	}
	if created := (*createdError)(nil); errors.As(err, &created) {
		done++
	}
	switch done {
	case 0:
		return fmt.Errorf("nothing was changed: %w", err)
	case len(targets):
		return fmt.Errorf("%w\nAll objects were written: %s", err, names(targets))
	}
	return fmt.Errorf("%w\nWritten before this: %s. Not written: %s", err, names(targets[:done]), names(targets[done:]))
}

// isRefusal says whether an error is the server's word on the object, and not that the server could not be asked.
func isRefusal(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	if strings.Contains(status.Status().Message, unknownField) {
		return true
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized &&
		code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

func withDeadline(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// explain adds to the server's error which object of which file it is about.
func explain(o object, err error) error {
	if unknown := (*apiutil.ErrResourceDiscoveryFailed)(nil); errors.As(err, &unknown) && meta.IsNoMatchError(err) {
		return &exitError{exitRefused, fmt.Errorf("%s (%s): the server does not know apiVersion %s: use %s for "+
			"Holdfast's kinds", o, o.source, o.GetAPIVersion(), api.GroupVersion)}
	}
	return fmt.Errorf("%s (%s%s): %w", o, o.source, o.linesOf(err), &plainError{err})
}

// plainError leaves out of the server's words what helps nobody to mend the object.
type plainError struct{ error }

// unknownField is how the server begins when an object has a field that its kind does not have. It sends that as a fault of
// its own, with code 500.
const unknownField = "failed to create typed patch object ("

// incomplete is what the server adds when one mistake keeps it from looking for others.
const incomplete = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

func (e *plainError) Error() string {
	text := strings.ReplaceAll(e.error.Error(), ", "+incomplete, "")
	if before, after, found := strings.Cut(text, unknownField); found {
		_, field, _ := strings.Cut(after, "): ")
		text = before + field
	}
	return text
}

func (e *plainError) Unwrap() error { return e.error }
