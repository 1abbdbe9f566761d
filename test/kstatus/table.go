package kstatus

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/holdfast-storage/holdfast/deploy/argocd"
)

// State is a state of an object, whatever its kind.
type State string

// The states, which are the columns of the table.
const (
	// New: it was declared, and nobody has looked at it.
	New State = "new"
	// Ready: it is as it is declared, and serves.
	Ready State = "ready"
	// Reconciling: Holdfast works on it, or waits for what comes by itself.
	Reconciling State = "reconciling"
	// Stalled: a user has to act.
	Stalled State = "stalled"
	// Deleted: it is being deleted.
	Deleted State = "deleted"
	// Behind: its spec was changed, and nobody has looked at that.
	Behind State = "behind"
)

// Table is what kstatus says of each kind in each state, as docs/reference/conditions.md has it. "-" stands for a state that
// a kind does not have.
//
//go:embed table.txt
var Table string

// Check checks that kstatus says of an object in a state what the table says.
func Check(t testing.TB, state State, o runtime.Object) {
	t.Helper()
	kind := Unstructured(t, o).GetKind()
	want := Cell(kind, state)
	if got, why := Of(t, o); got != want {
		t.Errorf("a %s that is %s is %s for kstatus (%s), want %s", kind, state, got, why, want)
	}
	checkArgoCD(t, kind, state, want, o)
}

// shown are what Argo CD may show of what kstatus says. Argo CD has more words for what is not known and what is paused.
var shown = map[string][]string{
	Current: {"Healthy"}, InProgress: {"Progressing", "Unknown", "Suspended"}, Failed: {"Degraded"}, Terminating: {"Progressing"},
}

func checkArgoCD(t testing.TB, kind string, state State, is string, o runtime.Object) {
	t.Helper()
	if !slices.Contains(argocd.Kinds, kind) {
		return // a record, of which Argo CD shows nothing
	}
	health, message := ArgoCD(t, o)
	if !slices.Contains(shown[is], health) || message == "" {
		t.Errorf("a %s that is %s is %s for Argo CD (%q), and %s for kstatus", kind, state, health, message, is)
	}
}

// Cell is the entry of the table; empty where there is none.
func Cell(kind string, state State) string {
	lines := strings.Split(strings.TrimSpace(Table), "\n")
	column := slices.Index(cells(lines[0]), string(state))
	for _, line := range lines[2:] {
		if row := cells(line); row[0] == kind && column > 0 {
			return row[column]
		}
	}
	return ""
}

// cells are the cells of a line of the table.
func cells(line string) []string {
	all := strings.Split(strings.Trim(line, "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
