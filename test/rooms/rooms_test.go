// Package rooms keeps packages small enough to live in, lines short enough to read, and the words of
// texts to the glossary. What does not keep to the limits today is on a list that may only shrink.
package rooms

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	root = "../.."
	// list has the offenders: a kind, a place and today's number in each line.
	list = "testdata/offenders.txt"
)

// The limits. Tests, test programs and generated files do not count, but for the width of lines.
const (
	mostFiles   = 20
	mostLines   = 4000
	mostMethods = 30
	widest      = 120
	// widestComment is for whole lines of comment, with 4 columns for a tab.
	widestComment = 100
	lineStep      = 100
)

var rewrite = flag.Bool("rewrite", false, "write the list anew; it may only shrink")

// dialect are words that mean nothing to a newcomer where a text of the program has them;
// CONTRIBUTING.md has the words for them.
var dialect = regexp.MustCompile(`(?i)\b(shall|is to be|are to be|told|tells|heard|astray|goes on|going on|go on|` +
	`comes first|as far as it may|let go|lets go|somebody|anybody|nobody|looks? after|looked after|the world|` +
	`for want of|cannot be had)\b`)

var comment = regexp.MustCompile(`^\s*//( |$)`)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// offence is what is counted: a kind, such as "lines", and a place, such as "cli".
type offence struct{ kind, place string }

// TestRooms counts what lies over the limits, and compares it with the list.
func TestRooms(t *testing.T) {
	found, err := count()
	if err != nil {
		t.Fatal(err)
	}
	limits := read(t)
	for _, o := range sorted(found) {
		if limit := limits[o]; found[o] > limit && (!*rewrite || len(limits) > 0) {
			t.Errorf("%s of %s: %d, and at most %d", o.kind, o.place, found[o], max(limit, most[o.kind]))
		}
	}
	for _, o := range sorted(limits) {
		if found[o] < limits[o] && !*rewrite {
			t.Errorf("%s of %s are %d and no longer %d: 'go test ./test/rooms -rewrite' lowers the limit",
				o.kind, o.place, found[o], limits[o])
		}
	}
	if *rewrite && !t.Failed() {
		write(t, found)
	}
}

// most are the limits for whoever is not on the list, by kinds.
var most = map[string]int{"files": mostFiles, "lines": mostLines, "methods": mostMethods}

// count finds what is over the limits.
func count() (map[offence]int, error) {
	all := map[offence]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "testdata", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		return countFile(all, filepath.ToSlash(dir), path, text)
	})
	maps.DeleteFunc(all, func(o offence, n int) bool { return n <= most[o.kind] })
	for o, n := range all {
		if o.kind == "lines" { // a mend may add some
			all[o] = (n + lineStep - 1) / lineStep * lineStep
		}
	}
	return all, err
}

func countFile(all map[offence]int, dir, path string, text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		if utf8.RuneCountInString(lines.Text()) > widest {
			all[offence{"wide lines", dir}]++
		}
		if columns(lines.Text()) > widestComment && comment.Match(lines.Bytes()) {
			all[offence{"wide comments", dir}]++
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("while reading %s: %w", path, err)
	}
	if strings.HasSuffix(path, "_test.go") || dir == "test" || strings.HasPrefix(dir, "test/") {
		return nil
	}
	all[offence{"files", dir}]++
	all[offence{"lines", dir}] += n
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.FuncDecl:
			if x.Recv != nil && len(x.Recv.List) == 1 {
				all[offence{"methods", dir + "." + receiver(x.Recv.List[0].Type)}]++
			}
		case *ast.BasicLit:
			if x.Kind == token.STRING && dialect.MatchString(x.Value) {
				all[offence{"dialect", dir}]++
			}
		}
		return true
	})
	return nil
}

// columns is how wide a line is in an editor.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

func sorted(counted map[offence]int) []offence {
	return slices.SortedFunc(maps.Keys(counted), func(a, b offence) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.place, b.place))
	})
}

func read(t *testing.T) map[offence]int {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	limits := map[offence]int{}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		place, number, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("%s has the line %q", list, line)
		}
		limits[offence{kind, place}] = n
	}
	return limits
}

func write(t *testing.T, found map[offence]int) {
	t.Helper()
	var b strings.Builder
	for _, o := range sorted(found) {
		fmt.Fprintf(&b, "%s: %s %d\n", o.kind, o.place, found[o])
	}
	if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
