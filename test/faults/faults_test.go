// Package faults holds the list of known faults of the systems that Holdfast learned from, and checks that each has a test.
package faults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// named finds what a cell names: a scenario, or a package and a test in it.
var named = regexp.MustCompile("`([^`]+)`")

func TestFaultsHaveTests(t *testing.T) {
	text, err := os.ReadFile("faults.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 2 || strings.HasPrefix(line, "|---") || strings.Contains(cells[1], "our test") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(cells[1], -1)
		if len(names) == 0 && !strings.Contains(cells[1], "does not apply: ") && !strings.Contains(cells[1], "not built: ") {
			t.Errorf("no test and no reason: %s", cells[0])
		}
		for _, name := range names {
			if err := find(name[1]); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[0]), err)
			}
		}
	}
	if rows < 80 {
		t.Errorf("the list has %d faults", rows)
	}
}

// find returns an error when there is no such test.
func find(name string) error {
	dir, test, ok := strings.Cut(name, " ")
	if !ok {
		_, err := os.Stat(filepath.Join(root, name))
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == test {
				return nil
			}
		}
	}
	return &os.PathError{Op: "find", Path: name, Err: os.ErrNotExist}
}

func TestFind(t *testing.T) {
	for name, there := range map[string]bool{
		"test/faults TestFind": true, "test/faults TestNobody": false, "test/nowhere TestFind": false,
		"test/faults/faults.md": true, "test/faults/none.txt": false, "test/faults find": true,
	} {
		if err := find(name); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
