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

// TestTaken_isTheOneQuestion: whether a device may be used is asked in one way, by Device.Taken:
// whoever compares its Availability himself decides for himself what an empty disk is.
func TestTaken_isTheOneQuestion(t *testing.T) {
	const root = "../.."
	asked, files := 0, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, root+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || rel == "test"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (isAvailability(n.X) || isAvailability(n.Y)) && !strings.HasPrefix(rel, "api/") {
					t.Errorf("%s compares the Availability of a device: ask Device.Taken", files.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "Taken" {
					asked++
				}
			}
			return true
		})
		return nil
	})
	if err != nil || asked < 5 {
		t.Errorf("Taken is asked at %d places (%v)", asked, err)
	}
}

func isAvailability(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "DeviceAvailable" || s.Sel.Name == "DeviceUnavailable")
}
