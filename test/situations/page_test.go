package situations

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the page of the documentation")

// page is made from the table.
const page = "../../docs/reference/situations.md"

// TestPage: the page says what the table says. 'go test ./test/situations -write' writes it.
func TestPage(t *testing.T) {
	want := text()
	if *write {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s is not what the table says (%v): run 'go test ./test/situations -write'", page, err)
	}
}

// TestTable: each row is whole, has a name of its own, and names a test that there is.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, s := range All() {
		whole := s.Name != "" && s.About != "" && s.Cause != "" && s.Ask != "" && s.Reason != ""
		if !whole || s.Staged+s.Scenario == "" || names[s.Name] {
			t.Errorf("the row is not whole, or its name is twice: %+v", s)
		}
		names[s.Name] = true
		for _, test := range []string{s.Staged, s.Scenario} {
			if test != "" && !exists(t, test) {
				t.Errorf("%s: there is no test %q", s.Name, test)
			}
		}
	}
}

// exists says whether there is a test, by its directory (e2e is test/e2e) and its function.
func exists(t *testing.T, test string) bool {
	dir, name, found := strings.Cut(test, " ")
	if dir == "e2e" {
		dir = "test/e2e"
	}
	files, err := os.ReadDir("../../" + dir)
	if err != nil || !found {
		return false
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		code, err := os.ReadFile("../../" + dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(code, []byte("func "+name+"(t *testing.T)")) {
			return true
		}
	}
	return false
}

func text() string {
	var b strings.Builder
	b.WriteString("# Situations\n\nWhat can happen, what to ask, and the reason and the next step of the answer" +
		" (`holdfast why OBJECT -o json`).\nNames in the commands are examples.\n")
	about := ""
	for _, s := range All() {
		if s.About != about {
			about = s.About
			fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(about[:1])+about[1:])
			b.WriteString("| Situation | Ask | Reason | Next step |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s |\n", s.Cause, s.Ask, s.Reason, s.Next)
	}
	return b.String()
}
