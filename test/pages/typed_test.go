package pages

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the list of commands")

// list is made from the pages.
const list = "commands.txt"

// TestAccounts: each command of a how-to is typed by a test, or has a reason, and the list says
// which. 'go test ./test/pages -write' writes it.
func TestAccounts(t *testing.T) {
	accounts, problems, err := Accounts("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	want := text(accounts)
	if *write {
		if err := os.WriteFile(list, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(list); err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s is not what the pages say (%v): run 'go test ./test/pages -write', and read the diff", list, err)
	}
}

// TestTypedPages: each page that a test types exists, and one test types it.
func TestTypedPages(t *testing.T) {
	seen := map[string]bool{}
	for test, files := range Typed {
		for _, page := range files {
			if _, err := os.Stat("../../docs/" + page); err != nil || seen[page] {
				t.Errorf("%s types %s: %v, or another one does", test, page, err)
			}
			seen[page] = true
		}
	}
}

func text(accounts []Account) string {
	var b strings.Builder
	b.WriteString("Commands of the tutorial and of the how-to pages. 'go test ./test/pages -write' makes this list.\n" +
		"A test types a command on a real system, or the list has the reason why none does. Commands in prose are\n" +
		"parsed, and not typed.\n\ntyped  not  prose  page, test\n")
	typed, not, prose := 0, 0, 0
	for _, a := range accounts {
		n := a.Executed()
		typed, not, prose = typed+n, not+len(a.Commands)-n, prose+a.InProse
		fmt.Fprintf(&b, "%5d %4d %6d  %s %s\n", n, len(a.Commands)-n, a.InProse, a.Page, a.Test)
	}
	fmt.Fprintf(&b, "%5d %4d %6d  all\n", typed, not, prose)
	for _, a := range accounts {
		reason := ""
		for _, c := range a.Commands {
			if c.Reason != "" && c.Reason != reason {
				reason = c.Reason
				fmt.Fprintf(&b, "\n%s, because %s:\n", a.Page, reason)
			}
			if c.Reason != "" {
				fmt.Fprintf(&b, "  %s\n", c.Head())
			}
		}
	}
	return b.String()
}

// TestCommands: what is typed, with its here-document, and what the comments say of it.
func TestCommands(t *testing.T) {
	b := Block{Line: 10, Note: "", Marks: []Mark{
		{"not", "systemctl, no systemd"},
		{"exits", "3 holdfast host drain h4$"},
		{"exits", "4 holdfast host drain$"},
		{"ctrl-c", "tail"},
		{"not", "nothing, so"},
	}, Lines: []string{
		"# first", "cat > x <<END", "a # kept", "END", "", "systemctl stop x", "holdfast host drain h4   # asks",
		"tail -f x",
	}}
	all := b.Commands()
	if len(all) != 4 || all[0].Line != 11 || all[0].Text != "cat > x <<END\na # kept\nEND" {
		t.Fatalf("%+v", all)
	}
	head := all[2].Head()
	if all[1].Reason != "no systemd" || all[2].Exit != 3 || head != "holdfast host drain h4" || !all[3].Interrupted {
		t.Errorf("%+v", all)
	}
	if idle := b.Idle(); len(idle) != 2 || idle[1].Text != "nothing, so" {
		t.Errorf("marks without a command: %+v", idle)
	}
}

// TestAccount_unlisted: a new command that no test types needs a reason.
func TestAccount_unlisted(t *testing.T) {
	b := Block{File: "x.md", Line: 1, Lines: []string{"holdfast status"}}
	if problems := (&Account{}).take([]Block{b}); len(problems) != 1 {
		t.Errorf("it is not missed: %v", problems)
	}
	b.Note = "no, it needs a robot"
	if problems := (&Account{}).take([]Block{b}); len(problems) != 0 {
		t.Errorf("with a reason: %v", problems)
	}
	b.Note = ""
	if problems := (&Account{Test: "TestX"}).take([]Block{b}); len(problems) != 0 {
		t.Errorf("with a test: %v", problems)
	}
}
