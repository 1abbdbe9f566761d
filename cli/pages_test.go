package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/test/commands"
	"github.com/holdfast-storage/holdfast/test/pages"
)

// TestCommandsInPages: each command of Holdfast in a page is there, has the flags that the page
// has, and takes these arguments. A block has whole commands. Prose may leave out the last
// arguments.
func TestCommandsInPages(t *testing.T) {
	files, err := pages.Files("..")
	if err != nil {
		t.Fatal(err)
	}
	inBlocks, inProse := 0, 0
	for _, file := range files {
		if strings.HasSuffix(file, "reference/commands.md") { // it is made of the commands
			continue
		}
		blocks, spans, err := pages.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			for _, line := range block.CommandLines() {
				for _, words := range pages.Calls(line.Text, "holdfast") {
					inBlocks++
					if problem := wrongWhole(filled(words)); problem != "" {
						t.Errorf("%s: %q: %s", line.Where, line.Text, problem)
					}
				}
			}
		}
		for _, span := range spans {
			if words, is := strings.CutPrefix(span.Text, "holdfast "); is {
				inProse++
				if problem := wrongCommand(filled(strings.Fields(words))); problem != "" {
					t.Errorf("%s:%d: %q: %s", span.File, span.Line, span.Text, problem)
				}
			}
		}
	}
	if inBlocks < 120 || inProse < 120 {
		t.Errorf("found %d commands in blocks and %d in prose only", inBlocks, inProse)
	}
}

// filled are the words of a command in a page: names in capital letters have examples, what is
// optional is there.
func filled(words []string) []string {
	var all []string
	for _, w := range pages.WithoutRedirections(words) {
		w, _, _ = strings.Cut(strings.Trim(w, "[]"), "|") // the first of several
		if w != "…" && w != "..." {
			all = append(all, commands.Example(w))
		}
	}
	return all
}

// wrongWhole says what is wrong with a command that is run as it is.
func wrongWhole(words []string) string {
	if problem := wrongCommand(words); problem != "" {
		return problem
	}
	cmd, rest, err := findCommand(words)
	if err != nil || cmd.DisableFlagParsing {
		return ""
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if !cmd.Runnable() {
		return "it is a group of commands"
	}
	args := cmd.Flags().Args()
	if err := cmd.ValidateArgs(args); err != nil {
		return err.Error()
	}
	if name := cmd.Name(); len(args) > 0 && (name == "get" || name == "delete") {
		return unknownKind(args[0])
	}
	return ""
}

// unknownKind says which kind of KIND,KIND or KIND/NAME there is not.
func unknownKind(arg string) string {
	kinds, err := crd.All()
	if err != nil {
		return err.Error()
	}
	names := []string{"secret", "all"}
	for _, kind := range kinds {
		n := kind.Spec.Names
		names = append(names, append(append(n.ShortNames, n.Categories...), n.Plural, n.Singular)...)
	}
	for _, word := range strings.Split(arg, ",") {
		if kind, _, _ := strings.Cut(word, "/"); !slices.Contains(names, kind) {
			return "there is no kind " + kind
		}
	}
	return ""
}

// TestWrongWhole: the check finds what a page can have wrong.
func TestWrongWhole(t *testing.T) {
	for line, ok := range map[string]bool{
		"holdfast apply -f x.yaml --wait":        true,
		"holdfast device free DEVICE --id ID":    true,
		"holdfast device free DEVICE --ids ID":   false,
		"holdfast device fre DEVICE":             false,
		"holdfast host maintenance enter":        false,
		"holdfast get pols":                      false,
		"holdfast get pools,nfsexport":           true,
		"holdfast host":                          false,
		"holdfast apply -f x.yaml --wait --now":  false,
		"holdfast plan -f x.yaml -o":             false,
		"holdfast action approve a b c":          false,
		"holdfast ceph shell -- ceph osd blah -": true,
	} {
		words := pages.Calls(line, "holdfast")
		if len(words) != 1 || (wrongWhole(filled(words[0])) == "") != ok {
			t.Errorf("%q is right: %v", line, !ok)
		}
	}
}
