package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/spell"
	"github.com/holdfast-storage/holdfast/platform/store"
)

func newHost(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "List, label, service, remove and replace hosts",
	}
	cmd.AddCommand(newHostList(g), newHostShow(g), newHostLabel(g), newHostMaintenance(g), newHostDrain(g), newHostRemove(g), newHostReplace(g))
	return cmd
}

func newHostList(g *globals) *cobra.Command {
	var selector, output string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List hosts",
		Example: `  holdfast host list
  holdfast host list -l topology.holdfast.io/rack=r1 -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"", "wide", "json", "yaml"}, output) {
				return &exitError{exitUsage, fmt.Errorf("unknown output format -o %s: use wide, json or yaml", output)}
			}
			return g.hostList(cmd.Context(), selector, output)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "only hosts with these labels, such as topology.holdfast.io/rack=r1")
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml")
	return cmd
}

func (g *globals) hostList(ctx context.Context, selector, output string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all, err := readHosts(ctx, c)
	if err != nil {
		return err
	}
	if selector != "" {
		chosen, err := all.selected(selector)
		if err != nil {
			return err
		}
		all.hosts = chosen
	}
	if output == "json" || output == "yaml" {
		return printValue(g.out, &api.HostList{Items: all.hosts}, output)
	}
	return all.table(g.out, output == "wide", time.Now())
}

// hostSet is all hosts with the daemons on them.
type hostSet struct {
	hosts   []api.Host
	daemons []api.Daemon
}

func readHosts(ctx context.Context, c client.Client) (*hostSet, error) {
	var hosts api.HostList
	if err := c.List(ctx, &hosts); err != nil {
		return nil, fmt.Errorf("while reading hosts: %w", err)
	}
	var daemons api.DaemonList
	if err := c.List(ctx, &daemons); err != nil {
		return nil, fmt.Errorf("while reading daemons: %w", err)
	}
	slices.SortFunc(hosts.Items, func(a, b api.Host) int { return strings.Compare(a.Name, b.Name) })
	return &hostSet{hosts.Items, daemons.Items}, nil
}

// selected returns the hosts that have the labels. That none has is a refusal: it is nearly always a slip.
func (s *hostSet) selected(selector string) ([]api.Host, error) {
	match, err := labels.Parse(selector)
	if err != nil {
		return nil, &exitError{exitRefused, fmt.Errorf("-l %s is invalid: %w", selector, err)}
	}
	var chosen []api.Host
	for i := range s.hosts {
		if match.Matches(labels.Set(s.hosts[i].Labels)) {
			chosen = append(chosen, s.hosts[i])
		}
	}
	if len(chosen) == 0 {
		return nil, &exitError{exitRefused, fmt.Errorf("no host has the labels %s: see the labels of a host with "+
			"'holdfast host show NAME'", selector)}
	}
	return chosen, nil
}

// named returns the host of this name.
func (s *hostSet) named(name string) (*api.Host, error) {
	names := make([]string, len(s.hosts))
	for i := range s.hosts {
		if s.hosts[i].Name == name {
			return &s.hosts[i], nil
		}
		names[i] = s.hosts[i].Name
	}
	hint := ""
	if like := spell.Nearest(name, names); like != "" {
		hint = fmt.Sprintf(": did you mean %s?", like)
	}
	return nil, &exitError{exitRefused, fmt.Errorf("host %s does not exist%s", name, hint)}
}

func (s *hostSet) table(w io.Writer, wide bool, now time.Time) error {
	if len(s.hosts) == 0 {
		_, err := fmt.Fprintln(w, "there are none: join a machine with a token from 'holdfast token create'")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	head := "NAME\tMODE\tAGENT\tLOCATION\tDAEMONS\tCLUSTERS\tAGE"
	if wide {
		head += "\tADDRESS\tRUNTIME\tVERSION\tREASON"
	}
	fmt.Fprintln(tw, head)
	for i := range s.hosts {
		h := &s.hosts[i]
		row := []string{h.Name, modeText(h), agentText(h, now), dash(locationOf(h)), s.daemonsText(h), dash(s.clustersText(h)), ageText(h, now)}
		if wide {
			row = append(row, dash(first(h.Status.Addresses)), dash(string(h.Status.Runtime)), dash(h.Status.AgentVersion), dash(h.Spec.Reason))
		}
		fmt.Fprintln(tw, cellsOf(row))
	}
	return tw.Flush()
}

// cellsOf joins cells. What comes from elsewhere must not break the table.
func cellsOf(cells []string) string {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	return strings.Join(cells, "\t")
}

func newHostShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a host: mode, labels, devices, nodes, daemons, actions",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return g.hostShow(cmd.Context(), args[0]) },
	}
}

func (g *globals) hostShow(ctx context.Context, name string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all, err := readHosts(ctx, c)
	if err != nil {
		return err
	}
	if _, err := all.named(name); err != nil {
		return err
	}
	on, err := store.ReadHost(ctx, c, name)
	if err != nil {
		return err
	}
	actions, err := hostActions(ctx, c, name)
	if err != nil {
		return err
	}
	return describeHost(g.out, on, actions, time.Now())
}
