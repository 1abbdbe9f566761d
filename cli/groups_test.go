package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runHere runs a command that needs no server.
func runHere(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var text bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &text, err: &text})
	return code, text.String()
}

// groupsOf are the commands, from this one on, that only group others.
func groupsOf(cmd *cobra.Command) (all [][]string) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			all = append(all, strings.Fields(c.CommandPath())[1:])
		}
		all = append(all, groupsOf(c)...)
	}
	return all
}

func TestGroups_unknownSubcommand(t *testing.T) {
	groups := groupsOf(newRoot(streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}}))
	if len(groups) < 6 {
		t.Fatalf("only %v are found", groups)
	}
	for _, group := range append(groups, []string{"completion"}) {
		if code, out := runHere(t, append(group, "nope")...); code != exitUsage || !strings.Contains(out, `unknown command "nope"`) {
			t.Errorf("holdfast %v nope: exit code %d:\n%s", group, code, out)
		}
		if code, out := runHere(t, group...); code != exitOK || !strings.Contains(out, "Available Commands") {
			t.Errorf("holdfast %v: exit code %d:\n%s", group, code, out)
		}
	}
}

func TestGroups_didYouMean(t *testing.T) {
	code, out := runHere(t, "host", "maintenance", "entr", "h1")
	if code != exitUsage || !strings.Contains(out, "did you mean 'enter'?") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
