package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrivers_areNotToldApart: outside of the drivers nobody asks which driver one is. What a driver can do beside what
// all can is an interface of the engine, such as engine.ActionDriver.
func TestDrivers_areNotToldApart(t *testing.T) {
	const root = "../.."
	files, asserted := token.NewFileSet(), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, root+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || rel == "test" || rel == "driver"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, x := range assertedTypes(n) {
				asserted++
				if isDriver(x) {
					t.Errorf("%s tells one driver from the others: give what it asks for an interface", files.Position(x.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || asserted < 10 {
		t.Errorf("types are asserted at %d places (%v)", asserted, err)
	}
}

// assertedTypes are the types that a type assertion, or a case of a switch, asks for.
func assertedTypes(n ast.Node) (all []ast.Expr) {
	switch n := n.(type) {
	case *ast.TypeAssertExpr:
		if n.Type != nil {
			all = append(all, n.Type)
		}
	case *ast.TypeSwitchStmt:
		for _, c := range n.Body.List {
			all = append(all, c.(*ast.CaseClause).List...)
		}
	}
	return all
}

// isDriver says whether a type is the Driver of a package, such as *ceph.Driver.
func isDriver(x ast.Expr) bool {
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	s, ok := x.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Driver" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name != "engine"
}
