package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

//go:generate env -u HOLDFAST_DATA_DIR -u HOLDFAST_DEVICE_FILTER go run ./internal/clidoc ../docs/reference/commands.md

// Page is the reference page of all commands, in Markdown. Defaults that the environment gives are in it.
func Page() string {
	root := newRoot(streams{})
	var b strings.Builder
	b.WriteString("<!-- Made by 'make generate' from package cli. Do not edit. -->\n# Commands\n\n" +
		"Exit codes: 0 done, 1 failed, 2 wrong command line, 3 refused and nothing changed, 4 not done in time\n" +
		"(the work continues), 5 changes found (plan --exit-code).\n\n" +
		"All commands have these flags:\n\n")
	fmt.Fprintf(&b, "```\n%s```\n", root.PersistentFlags().FlagUsages())
	for _, c := range root.Commands() {
		describe(&b, c)
	}
	return b.String()
}

// describe writes a command, and those below it.
func describe(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.Runnable() {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		if c.Long != "" {
			fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimSpace(c.Long))
		}
		fmt.Fprintf(b, "\n```\n%s\n%s```\n", c.UseLine(), c.LocalNonPersistentFlags().FlagUsages())
		if c.Example != "" {
			fmt.Fprintf(b, "\nFor example:\n\n```\n%s\n```\n", c.Example)
		}
	}
	for _, below := range c.Commands() {
		describe(b, below)
	}
}
