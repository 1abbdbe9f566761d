package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func newRecreate(g *globals) *cobra.Command {
	var lost string
	cmd := &cobra.Command{
		Use:   "recreate KIND NAME --lost ID",
		Short: "Accept the loss of a resource and create it again, empty",
		Long: `Accepts the loss of a volume, pool, filesystem, object store or client that was deleted or renamed
outside Holdfast. A new, empty one is created, or an existing one of its name is taken over. What is
left of the lost one stays; the message of the resource names it.

--lost is the id of the lost one (status.lost). It is valid for this loss only. The command sets the
annotation ` + api.AnnotationRecreate + `: the id, "@", and the lastTransitionTime of the condition Present.`,
		Example: `  holdfast recreate pool vms --lost 5
  holdfast recreate volume vol1 --lost 0b9ff2c5-5c0f-4b0e-a1b5-2c2f6a6e3f11`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lost == "" {
				return &exitError{exitUsage, errors.New("name the loss with --lost: the message of the resource has its id")}
			}
			return g.recreate(cmd.Context(), args[0], args[1], lost)
		},
	}
	cmd.Flags().StringVar(&lost, "lost", "", "the id of the lost one (status.lost)")
	return cmd
}

func (g *globals) recreate(ctx context.Context, kind, name, lost string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	r, err := g.readResource(ctx, c, kind, name)
	if err != nil {
		return err
	}
	called := strings.ToLower(r.ResourceKind())
	if why := cannotRecreate(r, lost); why != "" {
		return &exitError{exitRefused, fmt.Errorf("cannot create %s %s again: %s", called, name, why)}
	}
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationRecreate, api.LossWord(r.Common()))
	err = withDeadline(ctx, func(ctx context.Context) error {
		return c.Patch(ctx, r, client.RawPatch("application/merge-patch+json", change))
	})
	if err != nil {
		return fmt.Errorf("while accepting the loss of %s %s: %w", called, name, err)
	}
	fmt.Fprintf(g.out, "%s/%s: the loss of %s is accepted; follow it with 'holdfast get %s %s'\n", called, name, lost, called, name)
	return nil
}

// readResource reads what the users of storage get, by its kind and name.
func (g *globals) readResource(ctx context.Context, c client.Client, kind, name string) (api.Resource, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := g.mapper(config)
	if err != nil {
		return nil, err
	}
	mapping, err := findKind(mapper, kind)
	if err != nil {
		return nil, err
	}
	r := api.NewResource(mapping.GroupVersionKind.Kind)
	if r == nil {
		return nil, &exitError{exitUsage, fmt.Errorf("a %s holds no data that could be lost", mapping.GroupVersionKind.Kind)}
	}
	r.SetNamespace(g.namespace)
	r.SetName(name)
	err = withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(r), r) })
	if apierrors.IsNotFound(err) {
		return nil, g.noSuch(ctx, mapping, name)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading %s %s: %w", kind, name, err)
	}
	return r, nil
}

// cannotRecreate says why a loss cannot be accepted: there is none, or another one is meant.
func cannotRecreate(r api.Resource, lost string) string {
	switch s := r.Common(); {
	case !meta.IsStatusConditionFalse(s.Conditions, api.ResourcePresent):
		return "it is not lost"
	case s.Lost == "":
		return "the id of the loss is not recorded yet: retry when 'holdfast get' shows status.lost"
	case s.Lost != lost:
		return fmt.Sprintf("the id of the loss is %s, not %s", s.Lost, lost)
	}
	return ""
}
