package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/test/commands"
)

// TestCommandsInTexts: each command of Holdfast that a text names is there, has the flags that the text has, and
// takes as many arguments.
func TestCommandsInTexts(t *testing.T) {
	all, err := commands.All("..", "holdfast")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Fatalf("%d commands are found", len(all))
	}
	for _, c := range all {
		if c.Text == "holdfast host %s %s" || c.Text == "holdfast %s" { // the first one is a command
			continue
		}
		if problem := wrongCommand(c.Words()[1:]); problem != "" {
			t.Errorf("%s: %q: %s", c.Where, c.Text, problem)
		}
	}
	for _, wrong := range []string{"dooctor", "status --wahtch", "device fre x", "action approve a b c"} {
		if wrongCommand(strings.Fields(wrong)) == "" {
			t.Errorf("%q is taken for a command", wrong)
		}
	}
}

// findCommand finds a command, also one that the library adds by itself.
func findCommand(words []string) (*cobra.Command, []string, error) {
	root := newRoot(streams{out: io.Discard, err: io.Discard})
	root.InitDefaultCompletionCmd(words...)
	return root.Find(words)
}

// wrongCommand says what is wrong with a command. A text may leave out its last arguments.
func wrongCommand(words []string) string {
	cmd, rest, err := findCommand(words)
	if err != nil {
		return err.Error()
	}
	if cmd.DisableFlagParsing {
		return ""
	}
	if err := cmd.ParseFlags(rest); err != nil && !slices.Contains(rest, "--help") {
		if err := cmd.ParseFlags(append(rest, "x")); err != nil { // the text leaves out the value of the last one
			return err.Error()
		}
	}
	args := cmd.Flags().Args()
	if cmd.HasSubCommands() && len(args) > 0 && !cmd.Runnable() {
		return "there is no command " + strings.Join(args, " ")
	}
	return tooMany(cmd, args)
}

// tooMany says what a command has against its arguments, if more of them do not help.
func tooMany(cmd *cobra.Command, args []string) string {
	err := cmd.ValidateArgs(args)
	for range 3 {
		if err == nil || cmd.HasSubCommands() && len(args) == 0 {
			return ""
		}
		args = append(args, "x")
		if cmd.ValidateArgs(args) == nil {
			return ""
		}
	}
	return err.Error()
}
