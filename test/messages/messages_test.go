// Package messages keeps to the rule that behaviour depends on a Reason, never on a message: a message may read otherwise
// in the next version.
package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// readers are the functions that read messages, with what they read them for. The list may only shrink.
var readers = map[string]string{
	// Words of others, who have nothing else.
	"cli/apply.go isRefusal":               "an API server says in words alone that it does not know a field",
	"control/apiserver/fence.go refusal":   "the fence's own words in an error of etcd, which carries nothing else",
	"driver/ceph/failure.go failure":       "Ceph has words alone for why it refuses a command",
	"propose/plans/conflicts.go ManagerIn": "the API server names the manager of a field in words alone",
	// Ours, which go.
	"agent/beat.go noticeClock":            "the message tells by how much the clock differs, and is reported when that changes",
	"agent/reports.go take":                "a problem of the report is taken back, and no other one",
	"driver/gluster/grow.go rebalance":     "the condition Balanced keeps the id of a task in its message",
	"driver/gluster/lost.go noteLost":      "the condition BricksLost keeps the names of bricks in its message",
	"driver/gluster/restart.go mayRestart": "the condition BricksStarted keeps the names of bricks in its message",
}

// comparing are functions that look into a text.
var comparing = map[string]bool{
	"strings.Contains": true, "strings.HasPrefix": true, "strings.HasSuffix": true, "strings.CutPrefix": true, "strings.CutSuffix": true,
	"strings.Index": true, "strings.EqualFold": true, "strings.Cut": true,
}

func TestNobodyReadsMessages(t *testing.T) {
	found := map[string]token.Position{}
	for _, dir := range []string{"api", "engine", "driver", "platform", "agent", "action", "control", "leader", "propose", "cli"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || ofTests(path) {
				return err
			}
			return look(path, found)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range slices.Sorted(maps.Keys(found)) {
		if readers[where] == "" {
			t.Errorf("%s: %s depends on a message: give what it asks about a Reason", found[where], where)
		}
	}
	for where := range readers {
		if _, is := found[where]; !is {
			t.Errorf("%s reads no message any more: take it off the list", where)
		}
	}
}

// ofTests says whether a package is there for tests alone.
func ofTests(path string) bool {
	return slices.ContainsFunc([]string{"/sim/", "/storetest/", "/conformance/", "test/", "/radostest/"}, func(dir string) bool {
		return strings.Contains(filepath.ToSlash(filepath.Dir(path))+"/", dir)
	})
}

func look(path string, found map[string]token.Position) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if n != nil && reads(n) {
				found[filepath.ToSlash(name)+" "+f.Name.Name] = files.Position(n.Pos())
			}
			return true
		})
	}
	return nil
}

// reads says whether a piece of code looks into a message. Whether there is one, and whether a whole status is another one, may be asked.
func reads(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.CallExpr:
		return comparing[nameOf(x.Fun)] && slices.ContainsFunc(x.Args, mentions)
	case *ast.BinaryExpr:
		return (x.Op == token.EQL || x.Op == token.NEQ) && (isMessage(x.X) && !isEmpty(x.Y) && !isMessage(x.Y) || isMessage(x.Y) && !isEmpty(x.X) && !isMessage(x.X))
	case *ast.SwitchStmt:
		return x.Tag != nil && isMessage(x.Tag)
	}
	return false
}

func nameOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok {
			return pkg.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// mentions says whether a message is a part of an expression.
func mentions(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok && isMessage(x) {
			found = true
		}
		return !found
	})
	return found
}

func isMessage(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "Message"
	case *ast.CallExpr:
		s, ok := x.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Message" && len(x.Args) == 0
	case *ast.ParenExpr:
		return isMessage(x.X)
	}
	return false
}

func isEmpty(e ast.Expr) bool {
	x, ok := e.(*ast.BasicLit)
	return ok && x.Value == `""`
}

func TestReads(t *testing.T) {
	for code, want := range map[string]bool{
		`strings.Contains(d.Message, "x")`: true, `strings.HasPrefix(strings.ToLower(c.Message), "x")`: true, `c.Message == "x"`: true,
		`c.Message != text`: true, `st.Message() == "x"`: true, `c.Message == ""`: false, `a.Message != b.Message`: false,
		`c.Reason == "X"`: false, `strings.Contains(text, "x")`: false, `words.Cut(c.Message, 9)`: false,
	} {
		e, err := parser.ParseExpr(code)
		if err != nil {
			t.Fatal(err)
		}
		if got := reads(e); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}
