// Package failpoint lists, from the source of a package, the places at which a process may die and leave something done: the
// calls of what is durable or takes effect, and the calls that lead to one. A test that kills a process at each of them notes
// where it was, and so learns of a place that it missed, also of one that was written after the test.
package failpoint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Points are the places of one package. It is safe for concurrent use.
type Points struct {
	// pkg is the import path of the package.
	pkg string

	mu sync.Mutex
	// missing are the places that were not noted yet, as file:line, with what is called there.
	missing map[string]string
	all     int
	// in are the functions that the places lie in.
	in map[string]string
}

// call is a call in a function of the package. Where the function only makes another one that calls, within is empty: whoever
// calls the function does not call. of is what a method is called of, or the package of a function.
// in is the declared function that it lies in at any depth. A method's name has a dot before it in within and called, as it has where it is called.
type call struct{ within, in, of, callee, called, place string }

// List finds the places in the Go files of the directory dir, tests aside. effects are the names of the functions and methods
// that take effect, such as Write, or os.Remove where others that are called so do not: what stands before the dot is the last name
// before it in the code, also of a function that is called. A function of the package that calls one of them leads to it, and so on;
// methods are told apart by their names alone, without their receivers.
func List(dir string, effects ...string) (*Points, error) {
	calls, err := callsIn(dir)
	if err != nil {
		return nil, err
	}
	leads := map[string]bool{}
	takes := func(c call) bool {
		return slices.Contains(effects, c.callee) || slices.Contains(effects, c.of+"."+c.callee) || leads[c.called]
	}
	for grown := true; grown; {
		grown = false
		for _, c := range calls {
			if c.within != "" && takes(c) && !leads[c.within] {
				leads[c.within], grown = true, true
			}
		}
	}
	pkg, err := importPath(dir)
	if err != nil {
		return nil, err
	}
	p := &Points{pkg: pkg, missing: map[string]string{}, in: map[string]string{}}
	for _, c := range calls {
		if takes(c) {
			p.missing[c.place], p.in[c.place] = c.callee, c.in
		}
	}
	p.all = len(p.missing)
	return p, nil
}

// callsIn returns all calls in the Go files of a directory.
func callsIn(dir string) ([]call, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("while looking for Go files in %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no Go files in %s", dir)
	}
	files := token.NewFileSet()
	var calls []call
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("while looking for calls: %w", err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				calls = append(calls, callsOf(files, nameOfDecl(f), f.Name.Name, f.Body)...)
			}
		}
	}
	return calls, nil
}

func callsOf(files *token.FileSet, within, in string, body ast.Node) (calls []call) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			calls = append(calls, callsOf(files, "", in, n.Body)...)
			return false
		case *ast.CallExpr:
			at := files.Position(n.Lparen)
			calls = append(calls, call{within, in, ofWhat(n.Fun), nameOf(n.Fun), calledAs(n.Fun), fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)})
		}
		return true
	})
	return calls
}

func nameOfDecl(f *ast.FuncDecl) string {
	if f.Recv != nil {
		return "." + f.Name.Name
	}
	return f.Name.Name
}

// calledAs is the name as nameOfDecl has it: a function of the package itself is called without a dot, a method with one.
func calledAs(fun ast.Expr) string {
	if _, ok := fun.(*ast.SelectorExpr); ok {
		return "." + nameOf(fun)
	}
	return nameOf(fun)
}

func nameOf(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func ofWhat(fun ast.Expr) string {
	f, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if made, ok := f.X.(*ast.CallExpr); ok {
		return nameOf(made.Fun)
	}
	return nameOf(f.X)
}

// Note notes every place that leads to the call of Note.
func (p *Points) Note() {
	here := p.here()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, place := range here {
		delete(p.missing, place)
	}
}

// Here tells where in the package it is called: a text that differs from that of any other way to come to a call of Here.
func (p *Points) Here() string { return strings.Join(p.here(), " ") }

func (p *Points) here() (places []string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if packageOf(f.Function) == p.pkg {
			places = append(places, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
		}
	}
	return places
}

// packageOf is the import path in a function's full name, such as example.com/m/pkg.(*T).Do.func1.
func packageOf(function string) string {
	slash := strings.LastIndex(function, "/") + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// importPath is the import path of the package in a directory, by the go.mod above it. Paths of files cannot say it: a program that
// was built with -trimpath does not have them.
func importPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for root := abs; ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if errors.Is(err, fs.ErrNotExist) && root != filepath.Dir(root) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("while looking for the module of %s: %w", dir, err)
		}
		module := modulePath(string(text))
		return path.Join(module, strings.TrimPrefix(abs, root)), nil
	}
}

// modulePath is the path in the module directive of a go.mod.
func modulePath(text string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// Missing returns the places that were never noted, and how many there are in all.
func (p *Points) Missing() (missing []string, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, place := range slices.Sorted(maps.Keys(p.missing)) {
		missing = append(missing, place+" ("+p.missing[place]+")")
	}
	return missing, p.all
}

// In is the name of the declared function in which a place (file:line) lies.
func (p *Points) In(place string) string { return p.in[place] }
