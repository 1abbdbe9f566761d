package imports

import (
	"go/ast"
	"testing"
)

// TestDrivers_areNotToldApart: outside of the drivers nobody asks which driver one is. What a driver can do beside what
// all can is an interface of the engine, such as engine.ActionDriver.
func TestDrivers_areNotToldApart(t *testing.T) {
	asserted := 0
	inspect(t, func(n ast.Node) {
		for _, x := range assertedTypes(n) {
			asserted++
			if isDriver(x) {
				t.Errorf("%s tells one driver from the others: give what it asks for an interface", files.Position(x.Pos()))
			}
		}
	}, "driver/")
	if asserted < 10 {
		t.Errorf("types are asserted at %d places", asserted)
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
