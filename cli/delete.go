package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

type deleteOptions struct {
	files   []string
	wait    bool
	timeout time.Duration
}

func newDelete(g *globals) *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete -f FILE | delete KIND NAME",
		Short: "Delete objects",
		Long: `Deletes the objects in the files, or one object by its kind and name.

Deleting a StorageCluster stops its daemons. Its data stays on the devices unless spec.deletionPolicy is Wipe.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return g.delete(cmd.Context(), args, o) },
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "a file with the objects to delete, - for standard input; may be repeated")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "wait until they are gone")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	return cmd
}

func (g *globals) delete(ctx context.Context, args []string, o deleteOptions) error {
	objects, err := g.toDelete(args, o.files)
	if err != nil {
		return err
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	// The cluster first: its nodes say where its daemons are.
	slices.SortStableFunc(objects, func(a, b object) int { return deleteRank(a) - deleteRank(b) })
	for _, obj := range objects {
		if err := g.deleteOne(ctx, c, obj, o); err != nil {
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

func (g *globals) toDelete(args, files []string) ([]object, error) {
	switch {
	case len(args) == 0:
		return readManifests(files, g.in, g.namespace)
	case len(args) != 2 || len(files) > 0:
		return nil, &exitError{exitUsage, errors.New("say either -f FILE, or a kind and a name")}
	}
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := g.mapper(config)
	if err != nil {
		return nil, err
	}
	mapping, err := findKind(mapper, args[0])
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	u.SetName(args[1])
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		u.SetNamespace(g.namespace)
	}
	return []object{{u, "command line"}}, nil
}

func (g *globals) deleteOne(ctx context.Context, c client.Client, o object, opts deleteOptions) error {
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Delete(ctx, o.Unstructured) })
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(g.out, "%s is not there\n", o)
		return nil
	}
	if err != nil {
		return explain(o, err)
	}
	if opts.wait {
		if err := waitGone(ctx, c, o, opts.timeout); err != nil {
			return err
		}
	}
	fmt.Fprintf(g.out, "%s deleted\n", o)
	return nil
}

// clusterMode is the mode of a StorageCluster; what is none counts as active.
func clusterMode(u *unstructured.Unstructured) api.ClusterMode {
	mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
	if u.GetKind() != "StorageCluster" || mode == "" {
		return api.ClusterActive
	}
	return api.ClusterMode(mode)
}

// waitGone returns when the object is no longer there.
func waitGone(ctx context.Context, c client.Client, o object, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		current := o.DeepCopy()
		err := c.Get(ctx, client.ObjectKeyFromObject(o), current)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return explain(o, err)
		}
		if mode := clusterMode(current); err == nil && mode != api.ClusterActive {
			return &exitError{exitRefused, fmt.Errorf("%s is marked as deleted, but its mode is %s, so nothing is removed: set spec.mode to Active", o, mode)}
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New("interrupted; the work goes on: see 'holdfast status'")
			}
			return &exitError{exitTimeout, fmt.Errorf("%s is not gone after %s; it goes on: see 'holdfast status'", o, timeout)}
		case <-time.After(pause):
		}
	}
}
