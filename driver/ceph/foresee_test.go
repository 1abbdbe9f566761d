package ceph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each verb that the code names can be carried out and is foreseen: one that is not makes plans that tell the same step again and
// again.
func TestVerbs(t *testing.T) {
	named := 0
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "orch/orch.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "verb") || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if v, known := verbs[text]; err != nil || !known || v.perform == nil || v.foresee == nil {
				t.Errorf("the verb %s (%s) is not known", spec.Names[0].Name, literal.Value)
			}
			named++
			return true
		})
	}
	if named != len(verbs) {
		t.Errorf("%d verbs are known, and the code names %d", len(verbs), named)
	}
}
