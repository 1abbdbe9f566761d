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
		Short: "Take a host out of service for a while, and put it back",
	}
	var reason string
	var offline bool
	enter := hostAction{kind: hosts.EnterMaintenance, verb: "enter-maintenance"}
	in := &cobra.Command{
		Use:   "enter NAME",
		Short: "Tell the storage systems that the host will be away, and stop its daemons",
		Long: `Tells the storage systems that the host will be away for a while, so that they rebuild nothing elsewhere, and stops its
daemons. It is refused where the others cannot do without it. When it is done, the machine may be switched off.`,
		Example: `  holdfast host maintenance enter h1 --reason "a new fan" --wait`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			enter.host = args[0]
			enter.set(hosts.ParamReason, reason)
			enter.set(hosts.ParamOffline, yes(offline))
			return g.hostAction(cmd.Context(), enter)
		},
	}
	in.Flags().StringVar(&reason, "reason", "", "why, for those who look later")
	in.Flags().BoolVar(&offline, "offline", false, "the machine is off already: do not wait for the word of its agent")
	enter.bindPlanned(in)
	exit := hostAction{kind: hosts.ExitMaintenance, verb: "exit-maintenance"}
	out := &cobra.Command{
		Use:   "exit NAME",
		Short: "Put a host back into service, after maintenance or draining",
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
Where a cluster has deletionPolicy Wipe, the disks of the host are wiped when their data is elsewhere. That is refused until its plan is named:
it is shown and kept, and 'holdfast apply --plan NAME --wait' does it.`

func newHostDrain(g *globals) *cobra.Command {
	var reason string
	o := hostAction{kind: hosts.Drain, verb: "drain"}
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move data and daemons from a host to others, and place nothing new there",
		Long: `Moves data and daemons from a host to others, and places nothing new there.
` + wipedText,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.host = args[0]
			o.set(hosts.ParamReason, reason)
			return g.hostAction(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look later")
	o.bindPlanned(cmd)
	return cmd
}

func newHostRemove(g *globals) *cobra.Command {
	var gone, nodes bool
	o := hostAction{kind: hosts.Remove, verb: "remove"}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a host out for good, alive or dead",
		Long: `Drains a host and takes it out for good. It is refused while that would break something, and says what.

Of a machine that is dead, say so with --gone. Its daemons are then let go without the word of its agent, as soon as their
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
		Short: "Put a machine that joined in the place of another one, alive or dead",
		Long: `Moves what is declared on the host OLD to the host NEW, which has joined before, empties OLD and takes it out for good.

Of a machine that is dead, say so with --gone: it must not come back. Its daemons are then let go without the word of its agent,
as soon as their clusters do not need them any more.

No disk of NEW is used that nobody named. Where the StorageNode names disks by what NEW has too, such as /dev/sdb, these are
meant. Otherwise name them with --devices.
` + wipedText,
		Example: `  holdfast host replace h3 h7 --gone --devices /dev/sdb,/dev/sdc --wait`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == args[1] {
				return &exitError{exitRefused, fmt.Errorf("NEW must be another host than OLD, and both are %s", args[0])}
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
	cmd.Flags().StringSliceVar(&devices, "devices", nil, "the disks of NEW to use, in the place of those of OLD")
	cmd.Flags().StringSliceVar(&ips, "ips", nil, "the addresses of NEW for storage traffic, where those of OLD are declared")
	o.bindPlanned(cmd)
	return cmd
}
