package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// source is a file of the program, no test.
type source struct {
	path string
	file *ast.File
}

var files = token.NewFileSet()

// parsed are all sources, read once.
var parsed = sync.OnceValues(func() (all []source, err error) {
	const root = "../.."
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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
		all = append(all, source{rel, file})
		return err
	})
	return all, err
})

// inspect shows f all nodes of the sources, but for those below some directories.
func inspect(t *testing.T, f func(n ast.Node), except ...string) {
	t.Helper()
	all, err := parsed()
	if err != nil || len(all) < 500 {
		t.Fatalf("%d sources were read (%v)", len(all), err)
	}
next:
	for _, s := range all {
		for _, dir := range except {
			if strings.HasPrefix(s.path, dir) {
				continue next
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			f(n)
			return true
		})
	}
}
