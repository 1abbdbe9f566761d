package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/gone"
	"github.com/holdfast-storage/holdfast/cli/kube"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

type deleteOptions struct {
	files        kube.Files
	plan         string
	whenPossible bool
	wait         bool
	timeout      time.Duration
	selector     string
	// ignoreMissing is set where an object that does not exist is no fault.
	ignoreMissing bool
}

func newDelete(g *globals) *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete -f FILE | delete KIND NAME... | delete KIND/NAME... | delete KIND -l LABELS | delete --plan NAME",
		Short: "Delete objects",
		Long: `Deletes the objects in the files, or those named. A deletion that is impossible
now, such as of a node with the last good copy of some data, is refused with exit code 3, and
nothing is changed.

While it waits, it says what the deletion waits for, and in the end what became of the data.
Deleting a StorageCluster stops its daemons. Its data stays on the devices unless
spec.deletionPolicy is Wipe. Then you have to name the plan: 'holdfast plan --delete
storagecluster/NAME'.`,
		RunE: func(cmd *cobra.Command, args []string) error { return g.delete(cmd.Context(), args, o) },
	}
	o.files.Bind(cmd.Flags(), "with the objects to delete")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "delete the objects of a kind with these labels")
	cmd.Flags().BoolVar(&o.ignoreMissing, "ignore-not-found", false,
		"end with 0 where a named object does not exist, as with -f")
	cmd.Flags().StringVar(&o.plan, "plan", "", "the plan to carry out, from 'holdfast plan --delete'")
	cmd.Flags().BoolVar(&o.whenPossible, "when-possible", false,
		"delete objects although the deletion is refused now: they are removed as soon as possible")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "wait until they are gone")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	return cmd
}

func (g *globals) delete(ctx context.Context, args []string, o deleteOptions) error {
	if o.plan != "" {
		return g.deletePlan(ctx, args, o)
	}
	objects, err := g.named(args, o.files, o.selector)
	if err != nil {
		return err
	}
	w, err := g.writer(false)
	if err != nil {
		return err
	}
	targets, err := w.targets(ctx, objects, api.PlanDelete)
	if err != nil {
		return err
	}
	if !o.ignoreMissing && !o.files.Given() {
		if err := missing(targets); err != nil {
			return err
		}
	}
	if err := w.checkDeletes(ctx, targets); err != nil {
		return err
	}
	p, err := g.propose(ctx, w, api.PlanDelete, targets)
	if err != nil {
		return err
	}
	if err := g.deletable(p, o.whenPossible); err != nil {
		return err
	}
	if err := g.requireNamed(ctx, w, p); err != nil {
		return err
	}
	return g.deleteAll(ctx, w, targets, o)
}

// missing refuses to delete what does not exist.
func missing(targets []target) error {
	var names []string
	for _, t := range targets {
		if t.live == nil {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &exitError{exitRefused, fmt.Errorf("nothing was deleted: %s does not exist; see 'holdfast get'",
		strings.Join(names, ", "))}
}

// deletePlan does exactly what a plan tells, or nothing.
func (g *globals) deletePlan(ctx context.Context, args []string, o deleteOptions) error {
	if len(args) > 0 || o.files.Given() || o.selector != "" {
		return &exitError{exitUsage, errors.New("name either the objects or --plan NAME: a plan contains the names of " +
			"its objects")}
	}
	w, err := g.writer(false)
	if err != nil {
		return err
	}
	plan, targets, err := g.bindPlan(ctx, w, bind{o.plan, api.PlanDelete, o.whenPossible})
	if err != nil {
		return err
	}
	if err := g.deleteAll(ctx, w, targets, o); err != nil {
		return fmt.Errorf("%w\nPlan %s is partly carried out; to continue, run the same command again", err, plan.Name)
	}
	return markPlan(ctx, w.client, plan, api.PlanApplied, "by "+w.owner)
}

func (g *globals) deleteAll(ctx context.Context, w *writer, targets []target, o deleteOptions) error {
	// The cluster first: its nodes say where its daemons are.
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b target) int { return deleteRank(a.object) - deleteRank(b.object) })
	for _, t := range targets {
		if err := g.deleteOne(ctx, w, t, o); err != nil {
			return err
		}
	}
	return nil
}

func deleteRank(o object) int {
	if o.GetKind() == "StorageCluster" {
		return 0
	}
	return 1
}

// named are the objects that arguments, or files, name.
func (g *globals) named(args []string, files kube.Files, selector string) ([]object, error) {
	switch {
	case len(args) == 0 && selector == "":
		return readManifests(files, g.in, g.namespace)
	case files.Given():
		return nil, &exitError{exitUsage, errors.New("use either -f FILE, or a kind and names")}
	case len(args) == 1 && !strings.Contains(args[0], "/") && selector == "":
		const names = "name the objects (%s NAME, or %[1]s/NAME), or select them with -l"
		return nil, &exitError{exitUsage, fmt.Errorf(names, args[0])}
	}
	from, err := getterOf(g)
	if err != nil {
		return nil, err
	}
	if err := knownKinds(from, args); err != nil {
		return nil, err
	}
	found, err := kube.Named(from, selector, args...)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	var objects []object
	for _, u := range found {
		objects = append(objects, object{Unstructured: u, source: "command line"})
	}
	return objects, nil
}

func (g *globals) deleteOne(ctx context.Context, w *writer, t target, opts deleteOptions) error {
	if t.live == nil {
		fmt.Fprintf(g.out, "%s does not exist\n", t)
		return nil
	}
	if err := w.delete(ctx, t); err != nil {
		return explain(t.object, err)
	}
	if opts.wait {
		if err := waitGone(ctx, w.client, t, &gone.Teller{Out: g.err, Name: t.String(), Since: time.Now()},
			opts.timeout); err != nil {
			return err
		}
	}
	fmt.Fprintf(g.out, "%s deleted%s\n", t, gone.Data(t.live))
	return nil
}

// checkDeletes has the server say what it would not delete, before anything is. With a cluster its keys and daemons go.
func (w *writer) checkDeletes(ctx context.Context, targets []target) error {
	if slices.ContainsFunc(targets, func(t target) bool { return t.GetKind() == "StorageCluster" }) {
		return nil
	}
	for _, t := range targets {
		if t.live == nil || !slices.Contains([]string{"Secret", "Daemon", "Host"}, t.GetKind()) {
			continue
		}
		err := withDeadline(ctx, func(ctx context.Context) error { return w.client.Delete(ctx, t.live.DeepCopy(), client.DryRunAll) })
		if client.IgnoreNotFound(err) != nil {
			return explain(t.object, err)
		}
	}
	return nil
}

// delete deletes the object that was looked at, and no other of its name, if nobody has changed it since.
func (w *writer) delete(ctx context.Context, t target) error {
	for range writeTries {
		uid, version := t.live.GetUID(), t.live.GetResourceVersion()
		err := withDeadline(ctx, func(ctx context.Context) error {
			return w.client.Delete(ctx, t.live.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
		})
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		now, err := w.read(ctx, t.object)
		if err != nil || now == nil {
			return err
		}
		theirs := plans.Differences(plans.Fields(t.live), plans.Fields(now))
		if len(theirs) > 0 || now.GetUID() != uid {
			return &exitError{exitRefused, fmt.Errorf("not deleted, because it was changed %s at this moment: check it and "+
				"delete it again", plans.WhoChanged(now))}
		}
		t.live = now
	}
	return fmt.Errorf("not deleted, because it was changed %d times meanwhile: retry", writeTries)
}

// clusterMode is the mode of a StorageCluster; what is none counts as active.
func clusterMode(u *unstructured.Unstructured) api.ClusterMode {
	mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
	if u.GetKind() != "StorageCluster" || mode == "" {
		return api.ClusterActive
	}
	return api.ClusterMode(mode)
}

// waitGone returns when the very object that was deleted is no longer there. That the server cannot be asked for a while ends
// nothing.
func waitGone(ctx context.Context, c client.Client, t target, teller *gone.Teller, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		current := t.live.DeepCopy()
		err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(t), current) })
		switch {
		case apierrors.IsNotFound(err), err == nil && current.GetUID() != t.live.GetUID():
			return nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return explain(t.object, err)
		case err == nil && clusterMode(current) != api.ClusterActive:
			return &exitError{exitRefused, fmt.Errorf("%s is marked as deleted, but nothing is removed in mode %s: set "+
				"spec.mode to Active",
				t, clusterMode(current))}
		case ctx.Err() == nil:
			last = err
		}
		if err == nil {
			teller.Tell(current, time.Now())
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New("interrupted; the work continues: see 'holdfast status'")
			}
			return &exitError{exitTimeout, notGone(t, timeout, last)}
		case <-time.After(pause):
		}
	}
}

// whyName is how 'holdfast why' calls an object.
func whyName(t target) string {
	return strings.TrimPrefix(strings.ToLower(t.GetKind()), "storage") + "/" + t.GetName()
}

func notGone(t target, timeout time.Duration, last error) error {
	if last != nil {
		return fmt.Errorf("cannot tell whether %s is gone after %s: %w", t, timeout, last)
	}
	return fmt.Errorf("%s is not gone after %s; the deletion continues: see 'holdfast status' and 'holdfast why %s'",
		t, timeout, whyName(t))
}
