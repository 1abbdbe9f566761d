package imports

import (
	"go/ast"
	"testing"
)

// TestTaken_isTheOneQuestion: whether a device may be used is asked in one way, by Device.Taken:
// whoever compares its Availability himself decides for himself what an empty disk is.
func TestTaken_isTheOneQuestion(t *testing.T) {
	asked := 0
	inspect(t, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if isAvailability(n.X) || isAvailability(n.Y) {
				t.Errorf("%s compares the Availability of a device: ask Device.Taken", files.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "Taken" {
				asked++
			}
		}
	}, "api/")
	if asked < 5 {
		t.Errorf("Taken is asked at %d places", asked)
	}
}

func isAvailability(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "DeviceAvailable" || s.Sel.Name == "DeviceUnavailable")
}
