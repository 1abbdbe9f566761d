package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// refuseUnknown makes a subcommand that there is not an error of the command line. Cobra does so for the root alone: of another command that only groups
// others it shows the help, and ends well; what a script does next would be done as if the command had been.
func refuseUnknown(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
	if !cmd.HasParent() || !cmd.HasSubCommands() || cmd.Runnable() {
		return
	}
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return &exitError{exitUsage, unknownSubcommand(cmd, args[0])}
	}
}

// unknownSubcommand says what there is no command for, and which may have been meant.
func unknownSubcommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if like := cmd.SuggestionsFor(name); len(like) > 0 {
		hint = fmt.Sprintf(" (did you mean '%s'?)", strings.Join(like, "' or '"))
	}
	return fmt.Errorf("unknown command %q for %q%s: see '%s --help'", name, cmd.CommandPath(), hint, cmd.CommandPath())
}
