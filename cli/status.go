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
)

func newStatus(g *globals) *cobra.Command {
	var watch bool
	var output string
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show the state of clusters, what they wait for, and why",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return g.status(cmd.Context(), args, watch, output)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print it again whenever it changes")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: one JSON object a line")
	return cmd
}

func (g *globals) status(ctx context.Context, args []string, watch bool, output string) error {
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
	p := newPrinter(g.out, output)
	if watch {
		return g.watchStatus(ctx, keys, p)
	}
	for _, key := range keys {
		var s snapshot
		err := withDeadline(ctx, func(ctx context.Context) (err error) {
			s, err = readSnapshot(ctx, c, key)
			return err
		})
		if err != nil {
			return err
		}
		if output == "json" {
			p.showJSON(key.Name, s)
			continue
		}
		rows := picture(key.Name, s, sinceCreation(s))
		p.print(rows)
	}
	return nil
}

func sinceCreation(s snapshot) time.Duration {
	if s.Cluster == nil {
		return 0
	}
	return time.Since(s.Cluster.CreationTimestamp.Time)
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

// watchStatus shows the clusters until it is interrupted.
func (g *globals) watchStatus(ctx context.Context, keys []types.NamespacedName, p *printer) error {
	w, err := g.watchNamespace(ctx, g.namespace)
	if err != nil {
		return err
	}
	for {
		var rows []string
		for _, key := range keys {
			s, err := w.snapshot(ctx, key)
			if err != nil {
				return err
			}
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
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		}
	}
}
