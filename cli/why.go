package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/noquorum"
	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/platform/store"
)

func newWhy(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "why OBJECT",
		Short: "Explain an object's state and the next step",
		Example: `  holdfast why osd.3
  holdfast why cluster/ceph
  holdfast why OSD_DOWN | quorum | pool/3 | pg/2.1f | plan/NAME
  holdfast why node/n1 | host/h1 | daemon/ceph-mon-a | action/NAME | volume/v1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			err := g.why(cmd.Context(), args[0], output)
			if state, next, lost := noquorum.Of(err); lost && output == "json" {
				answer := why.Answer{Reason: api.ReasonQuorumLost, Text: state, Next: next}
				return errors.Join(json.NewEncoder(g.out).Encode(answer), err)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: one JSON object: reason, text, next")
	return cmd
}

func (g *globals) why(ctx context.Context, object, output string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	w, err := readWorld(ctx, c, g.namespace)
	if err != nil {
		return err
	}
	answer, err := w.Explain(object)
	if errors.Is(err, why.ErrUnknown) {
		return &exitError{exitRefused, err}
	}
	if err != nil {
		return err
	}
	if output == "json" {
		return json.NewEncoder(g.out).Encode(answer)
	}
	fmt.Fprintln(g.out, answer)
	return nil
}

// readWorld reads what answers are made from. Actions on hosts lie in a namespace of their own.
func readWorld(ctx context.Context, c client.Reader, namespace string) (*why.World, error) {
	var clusters api.StorageClusterList
	var statuses api.StorageStatusList
	var nodes api.StorageNodeList
	var daemons api.DaemonList
	var actions, system api.ActionList
	var hosts api.HostList
	var plans api.PlanList
	in := client.InNamespace(namespace)
	for _, read := range []struct {
		list client.ObjectList
		opts []client.ListOption
	}{
		{&clusters, []client.ListOption{in}},
		{&statuses, []client.ListOption{in}},
		{&nodes, []client.ListOption{in}},
		{&daemons, []client.ListOption{in}},
		{&actions, []client.ListOption{in}},
		{&hosts, nil},
		{&plans, []client.ListOption{in}},
		{&system, []client.ListOption{client.InNamespace(api.SystemNamespace)}},
	} {
		if err := c.List(ctx, read.list, read.opts...); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", read.list, err)
		}
	}
	if namespace != api.SystemNamespace {
		actions.Items = append(actions.Items, system.Items...)
	}
	resources, err := store.ReadResources(ctx, c, in)
	if err != nil {
		return nil, err
	}
	return &why.World{
		Clusters: clusters.Items, Statuses: statuses.Items, Nodes: nodes.Items, Daemons: daemons.Items, Hosts: hosts.Items, Actions: actions.Items,
		Resources: resources, Plans: plans.Items,
	}, nil
}
