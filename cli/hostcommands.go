package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/engine/hosts"
)

func newHostMaintenance(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "maintenance",
		Short: "Start or end the maintenance of a host",
	}
	var reason string
	var offline bool
	enter := hostAction{kind: hosts.EnterMaintenance, verb: "enter-maintenance"}
	in := &cobra.Command{
		Use:   "enter NAME",
		Short: "Prepare the storage systems for the host's absence, and stop its daemons",
		Long: `Prepares the storage systems for the absence of the host, so that they do not rebuild its data
elsewhere, and stops its daemons. It is refused if a cluster or the control plane needs the
host. When it is done, you may power the machine off.`,
		Example: `  holdfast host maintenance enter h1 --reason "a new fan" --wait`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			enter.host = args[0]
			enter.set(hosts.ParamReason, reason)
			enter.set(hosts.ParamOffline, yes(offline))
			return g.hostAction(cmd.Context(), enter)
		},
	}
	in.Flags().StringVar(&reason, "reason", "", "the reason, for the record")
	in.Flags().BoolVar(&offline, "offline", false, "the machine is already off: do not wait for its agent")
	enter.bindPlanned(in)
	exit := hostAction{kind: hosts.ExitMaintenance, verb: "exit-maintenance"}
	out := &cobra.Command{
		Use:   "exit NAME",
		Short: "Return a host to service after maintenance or a drain",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			exit.host = args[0]
			return g.hostAction(cmd.Context(), exit)
		},
	}
	exit.bind(out)
	cmd.AddCommand(in, out)
	return cmd
}

// wipedText ends the help of what empties a host.
const wipedText = `
If a cluster has deletionPolicy Wipe, the disks of the host are wiped after their data has moved.
The command then shows and keeps the plan, and refuses; 'holdfast apply --plan NAME --wait' carries
it out.`

func newHostDrain(g *globals) *cobra.Command {
	var reason string
	o := hostAction{kind: hosts.Drain, verb: "drain"}
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move data and daemons off a host",
		Long: `Moves data and daemons from a host to others, and places nothing new on it.
` + wipedText,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.host = args[0]
			o.set(hosts.ParamReason, reason)
			return g.hostAction(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the record")
	o.bindPlanned(cmd)
	return cmd
}

func newHostRemove(g *globals) *cobra.Command {
	var gone, nodes bool
	o := hostAction{kind: hosts.Remove, verb: "remove"}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a host for good",
		Long: `Drains a host and removes it for good. It is refused if data, a quorum or a service would be lost,
with the reason.

For a dead machine use --gone. Its daemons are then released without its agent, as soon as their
clusters do not need them any more.
` + wipedText,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.host = args[0]
			o.set(hosts.ParamGone, yes(gone))
			if nodes {
				o.set(hosts.ParamNodes, hosts.Delete)
			}
			return g.hostAction(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&gone, "gone", false, "the machine is off and will not come back")
	cmd.Flags().BoolVar(&nodes, "delete-nodes", false, "delete the StorageNodes on the host, too")
	o.bindPlanned(cmd)
	return cmd
}

func newHostReplace(g *globals) *cobra.Command {
	var devices, ips []string
	var gone bool
	o := hostAction{kind: hosts.Replace, verb: "replace"}
	cmd := &cobra.Command{
		Use:   "replace OLD NEW",
		Short: "Replace a host by another that has joined",
		Long: `Moves the StorageNodes of host OLD to host NEW, which must have joined, drains OLD and removes it
for good.

For a dead machine use --gone: it must not come back. Its daemons are then released without its
agent, as soon as their clusters do not need them any more.

Only named disks of NEW are used. If the StorageNode names disks that NEW has, too, such as
/dev/sdb, these are used. Otherwise name them with --devices.
` + wipedText,
		Example: `  holdfast host replace h3 h7 --gone --devices /dev/sdb,/dev/sdc --wait`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == args[1] {
				return &exitError{exitRefused, fmt.Errorf("NEW must be another host than OLD, but both are %s", args[0])}
			}
			o.host = args[0]
			o.set(hosts.ParamBy, args[1])
			o.set(hosts.ParamGone, yes(gone))
			o.set(hosts.ParamDevices, strings.Join(devices, ","))
			o.set(hosts.ParamIPs, strings.Join(ips, ","))
			return g.hostAction(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&gone, "gone", false, "the machine of OLD is off and will not come back")
	cmd.Flags().StringSliceVar(&devices, "devices", nil, "the disks of NEW that replace those of OLD")
	cmd.Flags().StringSliceVar(&ips, "ips", nil, "the storage addresses of NEW, if those of OLD are declared")
	o.bindPlanned(cmd)
	return cmd
}
