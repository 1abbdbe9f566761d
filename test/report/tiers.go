package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/test/tier"
)

const module = "github.com/holdfast-storage/holdfast"

// otherModules are directories with a go.mod of their own, whose tests no tier runs.
var otherModules = []string{"tools/", "test/kubectl/", "test/kube/tools/", "test/s3client/"}

// check prints how many tests ran, and fails when one of the source did not.
func (r results) check(out io.Writer, ran string) error {
	declared, err := inSource()
	if err != nil {
		return err
	}
	return r.count(out, declared, ran)
}

func (r results) count(out io.Writer, declared []id, ran string) error {
	counts, missing := map[string]int{}, []string{}
	for _, i := range declared {
		one := r[i]
		switch {
		case one == nil:
			counts["missing"]++
			missing = append(missing, i.String())
		case one.last() == "skip" && strings.Contains(one.reason, tier.InFullOnly):
			counts["full"]++
		case one.last() == "skip":
			counts["skipped"]++
			fmt.Fprintf(out, "SKIPPED %s: %s\n", i, one.reason)
		default:
			counts["ran"]++
			counts[one.last()]++
		}
	}
	fmt.Fprintf(out, "\nOf %d tests %d ran, %d take part in 'make test-full' alone, %d were skipped, "+
		"%d did not take part.\n", len(declared), counts["ran"], counts["full"], counts["skipped"], counts["missing"])
	fmt.Fprintf(out, "tests: %d passed, %d failed, %d skipped\n",
		counts["pass"], counts["ran"]-counts["pass"], counts["full"]+counts["skipped"])
	switch {
	case ran == "":
		return nil
	case len(missing) > 0:
		return fmt.Errorf("%d tests are in no tier, or did not take part: %s", len(missing), words.Few(missing))
	case ran == "full" && counts["full"] > 0:
		return fmt.Errorf("%d tests of the full tier did not run", counts["full"])
	}
	return nil
}

// inSource finds all test functions of the module.
func inSource() ([]id, error) {
	out, err := exec.CommandContext(context.Background(), "git", "ls-files", "*_test.go").Output()
	if err != nil {
		return nil, fmt.Errorf("while listing the test files: %w", err)
	}
	var all []id
	for name := range strings.FieldsSeq(string(out)) {
		if inOtherModule(name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("while reading the tests: %w", err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && isTest(f) {
				all = append(all, id{path.Join(module, path.Dir(name)), f.Name.Name})
			}
		}
	}
	return all, nil
}

func inOtherModule(name string) bool {
	for _, dir := range otherModules {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// isTest goes by the rules of 'go help testfunc'. Fuzz tests and examples run with each package and are not counted.
func isTest(f *ast.FuncDecl) bool {
	rest, ok := strings.CutPrefix(f.Name.Name, "Test")
	first, _ := utf8.DecodeRuneInString(rest)
	named := ok && f.Name.Name != "TestMain" && (rest == "" || !unicode.IsLower(first))
	return named && f.Recv == nil && len(f.Type.Params.List) == 1
}
