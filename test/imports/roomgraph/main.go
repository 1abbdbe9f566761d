// Command roomgraph draws the graph of rooms, the top-level directories with Go code, into
// docs/architecture.md. It reads the imports of the product's packages, without their tests.
package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate go run . ../../.. ../../../docs/architecture.md

const (
	module = "github.com/holdfast-storage/holdfast/"
	begin  = "<!-- The graph is made by 'make generate' from the imports. Do not edit. -->\n"
	end    = "<!-- End of the graph. -->\n"
)

// outside are the directories that are no part of the product.
var outside = []string{"test", "tools", "docs"}

// room is one top-level directory: its packages one level down, and the rooms that it imports.
type room struct {
	packages, imports map[string]bool
}

// rooms reads the imports below a directory.
func rooms(root string) (map[string]*room, error) {
	all := map[string]*room{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(outside, parts[0])) {
				return filepath.SkipDir
			}
			return nil
		}
		if len(parts) < 2 || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		return add(all, path, parts)
	})
	return all, err
}

// add notes the package and the imports of one file, whose path below the root is parts.
func add(all map[string]*room, path string, parts []string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("read the imports of %s: %w", path, err)
	}
	name := parts[0]
	if all[name] == nil {
		all[name] = &room{packages: map[string]bool{}, imports: map[string]bool{}}
	}
	if len(parts) > 2 && parts[1] != "internal" {
		all[name].packages[parts[1]] = true
	}
	for _, imported := range file.Imports {
		rel, ours := strings.CutPrefix(strings.Trim(imported.Path.Value, `"`), module)
		other, _, _ := strings.Cut(rel, "/")
		if ours && other != name && !slices.Contains(outside, other) {
			all[name].imports[other] = true
		}
	}
	return nil
}

// reach is every room that one imports, also by way of others. It fails where rooms import each other.
func reach(all map[string]*room, from string, path []string) (map[string]bool, error) {
	if slices.Contains(path, from) {
		return nil, fmt.Errorf("rooms import each other: %s", strings.Join(append(path, from), " -> "))
	}
	seen := map[string]bool{}
	for _, next := range slices.Sorted(maps.Keys(all[from].imports)) {
		if all[next] == nil {
			return nil, fmt.Errorf("%s imports %s, which has no code", from, next)
		}
		further, err := reach(all, next, append(slices.Clone(path), from))
		if err != nil {
			return nil, err
		}
		seen[next] = true
		maps.Copy(seen, further)
	}
	return seen, nil
}

// arrows are the imports of a room that do not follow from its other imports.
func arrows(all map[string]*room, from string) ([]string, error) {
	implied := map[string]bool{}
	for next := range all[from].imports {
		further, err := reach(all, next, []string{from})
		if err != nil {
			return nil, err
		}
		maps.Copy(implied, further)
	}
	direct := slices.Sorted(maps.Keys(all[from].imports))
	return slices.DeleteFunc(direct, func(to string) bool { return implied[to] }), nil
}

// graph is the graph in Mermaid, and a table with all imports.
func graph(all map[string]*room) (string, error) {
	var s, table strings.Builder
	s.WriteString("```mermaid\nflowchart TB\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		label := "<b>" + name + "</b>"
		for i, p := range slices.Sorted(maps.Keys(all[name].packages)) {
			sep := " · "
			if i%4 == 0 {
				sep = "<br/>"
			}
			label += sep + p
		}
		fmt.Fprintf(&s, "    %s[\"%s\"]\n", name, label)
		imports := strings.Join(slices.Sorted(maps.Keys(all[name].imports)), ", ")
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, imports)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		to, err := arrows(all, name)
		if err != nil {
			return "", err
		}
		for _, other := range to {
			fmt.Fprintf(&s, "    %s --> %s\n", name, other)
		}
	}
	return s.String() + "```\n\n| room | imports |\n|---|---|\n" + table.String(), nil
}

// redraw replaces the graph in a page.
func redraw(page, graph string) (string, error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the page lacks the marks %q and %q", begin, end)
	}
	return head + begin + graph + end + tail, nil
}

// write draws the graph of the rooms below root into a page.
func write(root, file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, err := rooms(root)
	if err != nil {
		return err
	}
	drawn, err := graph(all)
	if err != nil {
		return err
	}
	fresh, err := redraw(string(page), drawn)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(fresh), 0o644)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: roomgraph ROOT FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "roomgraph:", err)
		os.Exit(1)
	}
}
