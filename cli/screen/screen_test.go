package screen

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestRank(t *testing.T) {
	rows := []string{"✓", "…", "", "✗", "?", "!"}
	slices.SortStableFunc(rows, func(a, b string) int { return Rank(a, "") - Rank(b, "") })
	if got := strings.Join(rows, ""); got != "✗!?…✓" {
		t.Error(got)
	}
	if Rank("…", "HEALTH_ERR") != Rank("✗", "BackOff") {
		t.Error("an error of Ceph is urgent")
	}
}

// TestWrap: no word is lost, and no row is too wide.
func TestWrap(t *testing.T) {
	const row = "  ✗ osd.3  h1  Failed  the device is gone: was it pulled? Put it back, or take osd.3 out"
	for width := 1; width < 100; width++ {
		rows := Wrap(row, width, 10)
		got := strings.Fields(strings.Join(rows, " "))
		if width >= 20 && !slices.Equal(got, strings.Fields(row)) {
			t.Fatalf("%d: %q", width, rows)
		}
		for _, r := range rows {
			if len([]rune(r)) > width {
				t.Fatalf("%d: %q", width, r)
			}
		}
	}
	if rows := Wrap(row, 40, 10); rows[1] != "          gone: was it pulled? Put it" {
		t.Errorf("%q", rows)
	}
	if rows := Wrap(strings.Repeat("x", 50), 20, 4); len(rows) != 3 {
		t.Errorf("%q", rows)
	}
}

func TestPaint(t *testing.T) {
	for row, want := range map[string]string{
		"  ✗ osd.3":                 "\x1b[31m  ✗\x1b[0m osd.3",
		"c  DEGRADED, HEALTH_OK: x": "c  \x1b[33mDEGRADED\x1b[0m, \x1b[32mHEALTH_OK\x1b[0m: x",
		"  - waits for ✗":           "  - waits for ✗",
	} {
		if got := Paint(row); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestNumbers(t *testing.T) {
	capacity := resource.MustParse("3Ti")
	s := &api.StorageStatusStatus{Capacity: &capacity, Ceph: &api.CephStatus{
		OSDs: 3, OSDsUp: 2, OSDsIn: 3, PGs: 9, PGsClean: 8,
	}}
	if got := Numbers(s); got != "capacity 3 TiB; OSDs: 2 up and 3 in of 3; PGs: 8 of 9 active+clean" {
		t.Error(got)
	}
	if got := Numbers(&api.StorageStatusStatus{}); got != "" {
		t.Error(got)
	}
}
