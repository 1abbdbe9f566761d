package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager owns the fields that 'holdfast apply' writes.
const fieldManager = "holdfast-apply"

type applyOptions struct {
	files   []string
	wait    bool
	timeout time.Duration
	output  string
}

func newApply(g *globals) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make what the files declare, or change what is there to it",
		Long: `Applies the objects in the files. All of them are checked first, by the server and against the hosts and devices that
are there; if one is refused, nothing at all is changed.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 refused, 4 not ready in time (it goes on).`,
		Example: `  holdfast apply -f examples/ceph-single-host.yaml --wait`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(o.output); err != nil {
				return err
			}
			return g.apply(cmd.Context(), o)
		},
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "a file with objects in YAML or JSON, - for standard input; may be repeated")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the storage system itself says that it is well, and show progress meanwhile")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long --wait waits")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json: one JSON object a line")
	return cmd
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return &exitError{exitUsage, fmt.Errorf("-o %s is not known: use json", output)}
	}
	return nil
}

func (g *globals) apply(ctx context.Context, o applyOptions) error {
	objects, err := readManifests(o.files, g.in, g.namespace)
	if err != nil {
		return err
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	checked, err := dryRun(ctx, c, objects)
	if err != nil {
		return err
	}
	if err := g.refuseImpossible(ctx, c, checked); err != nil {
		return err
	}
	p := newPrinter(g.out, o.output)
	for _, obj := range objects {
		verb, err := applyOne(ctx, c, obj)
		if err != nil {
			return err
		}
		p.applied(obj, verb)
	}
	if !o.wait {
		return nil
	}
	return g.waitReady(ctx, c, objects, o, p)
}

// dryRun has the server check every object and returns them as they would be stored.
func dryRun(ctx context.Context, c client.Client, objects []object) ([]object, error) {
	var checked []object
	var all []error
	code := exitRefused
	for _, o := range objects {
		result := object{o.DeepCopy(), o.source}
		if err := serverApply(ctx, c, result, client.DryRunAll); err != nil {
			all = append(all, explain(o, err))
			if !isRefusal(err) {
				code = exitFailed
				break
			}
			continue
		}
		checked = append(checked, result)
	}
	if len(all) > 0 {
		return nil, &exitError{code, fmt.Errorf("nothing was changed:\n%w", errors.Join(all...))}
	}
	return checked, nil
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
	if strings.Contains(err.Error(), unknownField) {
		return true
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized &&
		code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

// applyOne applies an object and says what that did.
func applyOne(ctx context.Context, c client.Client, o object) (string, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(o.GroupVersionKind())
	getErr := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(o), before) })
	created := apierrors.IsNotFound(getErr)
	if getErr != nil && !created {
		return "", explain(o, getErr)
	}
	if err := serverApply(ctx, c, o); err != nil {
		return "", explain(o, err)
	}
	switch {
	case created:
		return "created", nil
	case before.GetResourceVersion() == o.GetResourceVersion():
		return "unchanged", nil
	}
	return "configured", nil
}

// serverApply applies the object by server-side apply; the object becomes what the server answered.
func serverApply(ctx context.Context, c client.Client, o object, extra ...client.ApplyOption) error {
	opts := append([]client.ApplyOption{client.FieldOwner(fieldManager), client.ForceOwnership}, extra...)
	return withDeadline(ctx, func(ctx context.Context) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.Unstructured), opts...)
	})
}

func withDeadline(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// explain adds to the server's error which object of which file it is about.
func explain(o object, err error) error {
	return fmt.Errorf("%s (%s): %w", o, o.source, &plainError{err})
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
