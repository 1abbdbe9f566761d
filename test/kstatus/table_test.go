package kstatus

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/api/crd"
)

// TestTable: the table has a row for each kind, and readers of the documentation have the same table.
func TestTable(t *testing.T) {
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		kind := d.Spec.Names.Kind
		for _, state := range []State{New, Ready, Reconciling, Stalled, Deleted, Behind} {
			if Cell(kind, state) == "" {
				t.Errorf("the table does not say how a %s is that is %s", kind, state)
			}
		}
	}
	if rows := strings.Count(Table, "\n") - 2; rows != len(all) {
		t.Errorf("%d rows for %d kinds", rows, len(all))
	}
	page, err := os.ReadFile("../../docs/reference/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), Table) {
		t.Error("docs/reference/conditions.md has another table: put test/kstatus/table.txt there")
	}
}
