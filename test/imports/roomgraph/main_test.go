package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawing is a map of rooms as "room: import import".
func drawing(lines ...string) map[string]*room {
	all := map[string]*room{}
	for _, line := range lines {
		name, imports, _ := strings.Cut(line, ":")
		r := &room{packages: map[string]bool{}, imports: map[string]bool{}}
		for _, other := range strings.Fields(imports) {
			r.imports[other] = true
		}
		all[name] = r
	}
	return all
}

func TestArrowsLeaveOutWhatFollows(t *testing.T) {
	all := drawing("cli: engine driver api", "driver: engine api", "engine: api", "api:")
	got, err := arrows(all, "cli")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"driver"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCircleIsAnError(t *testing.T) {
	if _, err := arrows(drawing("a: b", "b: c", "c: a"), "a"); err == nil {
		t.Error("three rooms that import each other in a circle were drawn")
	}
}

// TestPage fails when the page in the tree is not what the imports say.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := rooms("../../..")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := graph(all)
	if err != nil {
		t.Fatal(err)
	}
	want, err := redraw(string(page), drawn)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/architecture.md is not what the imports say: run 'make generate'\n%s", diff)
	}
}
