package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/screen"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
)

func newStatus(g *globals) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show the state of clusters, what they wait for, and why",
		Long: `Shows the state of clusters: capacity, client IO, recovery with the time that it needs, and daemons,
broken ones first. The leader reads the figures from the storage system at this moment. If the storage
system does not answer, they are those of the StorageStatus.`,
		Example: "  holdfast status ceph --watch\n  holdfast status -o yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output != "yaml" {
				if err := checkOutput(o.output); err != nil {
					return err
				}
			}
			return g.status(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "print it again whenever it changes")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json: one JSON object a line; yaml: one document each")
	o.colour.Bind(cmd.Flags())
	return cmd
}

type statusOptions struct {
	watch  bool
	output string
	colour screen.Colour
}

func (g *globals) status(ctx context.Context, args []string, o statusOptions) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	keys, err := g.chosen(ctx, c, args)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		fmt.Fprintln(g.err, g.noCluster())
		return nil
	}
	live, err := livefigures.NewReader(g.restConfig, c)
	if err != nil {
		return err
	}
	p := newPrinter(g.out, o.output)
	if o.watch {
		if p.screen != nil {
			p.screen.Colour = o.colour
		}
		return g.watchStatus(ctx, keys, p, live)
	}
	figures := live.ReadAll(ctx, keys)
	for i, key := range keys {
		var s snapshot
		err := withDeadline(ctx, func(ctx context.Context) (err error) {
			s, err = readSnapshot(ctx, c, key)
			return err
		})
		if err != nil {
			return err
		}
		s.figures = figures[i]
		if p.json {
			p.showJSON(key.Name, s)
			continue
		}
		screen.Print(g.out, o.colour, picture(key.Name, s, sinceCreation(s)))
	}
	return nil
}

func sinceCreation(s snapshot) (age time.Duration) {
	if s.Cluster != nil {
		age = time.Since(s.Cluster.CreationTimestamp.Time)
	}
	return age
}

// noCluster says that there is none, which is no fault of who only asks.
func (g *globals) noCluster() error {
	return fmt.Errorf("namespace %s has no storage cluster: create one with 'holdfast apply -f FILE', or see "+
		"'holdfast get storageclusters -A'", g.namespace)
}

// chosen returns the named cluster, or all clusters of the namespace of some types, or of any where none is named; there may be none.
func (g *globals) chosen(
	ctx context.Context, c client.Client, args []string, of ...api.StorageType,
) ([]types.NamespacedName, error) {
	var list api.StorageClusterList
	err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list, client.InNamespace(g.namespace)) })
	if err != nil {
		return nil, fmt.Errorf("while reading storageclusters: %w", err)
	}
	var keys []types.NamespacedName
	for _, sc := range list.Items {
		ofType := len(of) == 0 || slices.Contains(of, sc.Spec.Type)
		if len(args) == 0 && ofType || len(args) > 0 && sc.Name == args[0] {
			keys = append(keys, client.ObjectKeyFromObject(&sc))
		}
	}
	if len(keys) == 0 && len(args) > 0 {
		return nil, &exitError{exitRefused, fmt.Errorf("storagecluster/%s does not exist in namespace %s: see 'holdfast "+
			"get storageclusters -A'", args[0], g.namespace)}
	}
	return keys, nil
}

// refresh is how often figures are read again while a person watches.
const refresh = 2 * time.Second

// watchStatus shows the clusters until it is interrupted.
func (g *globals) watchStatus(
	ctx context.Context, keys []types.NamespacedName, p *printer, live *livefigures.Reader,
) error {
	w, err := g.watchNamespace(ctx, g.namespace)
	if err != nil {
		return err
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		var rows []string
		figures := live.ReadAll(ctx, keys)
		for i, key := range keys {
			s, err := w.snapshot(ctx, key)
			if err != nil {
				return err
			}
			s.figures = figures[i]
			if p.screen == nil {
				p.show(key.Name, s)
				continue
			}
			rows = append(rows, picture(key.Name, s, sinceCreation(s))...)
		}
		if p.screen != nil {
			p.screen.Draw(rows)
		}
		select {
		case <-w.changed:
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		}
	}
}
