package screen

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
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
	want := []string{"capacity: 3 TiB", "OSDs: 2 up and 3 in of 3; PGs: 8 of 9 active+clean"}
	if got := Numbers(s, nil); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := Numbers(&api.StorageStatusStatus{}, nil); len(got) != 0 {
		t.Errorf("%q", got)
	}
	s.Figures = &api.StorageFigures{RawBytes: 1 << 40, UsedBytes: 1 << 39, UsedPercent: 50, AvailableBytes: 1 << 39}
	if got := Numbers(s, nil)[0]; got != "capacity: 512 GiB of 1 TiB used (50 %), 512 GiB available" {
		t.Error(got)
	}
	live := Numbers(s, &api.StorageFigures{RawBytes: 1 << 40})
	if got := live[0]; !strings.HasPrefix(got, "capacity: 0 B of 1 TiB used") {
		t.Errorf("what is said now does not count: %s", got)
	}
	g := &api.StorageStatusStatus{GlusterFS: &api.GlusterFSStatus{
		Peers: 3, PeersConnected: 2, Volumes: 1, Bricks: 3, BricksOnline: 2, Heals: 12,
	}}
	const heals = "peers: 2 of 3 connected; bricks: 2 of 3 online in 1 volumes; to heal: 12 entries, 0 in split-brain"
	if got := Numbers(g, nil); !slices.Equal(got, []string{heals}) {
		t.Errorf("%q", got)
	}
}

func TestRecovery(t *testing.T) {
	r := api.RecoveryFigures{MisplacedCopies: 600, DegradedCopies: 3, TotalCopies: 3000}
	const left = "recovery: 3 of 3000 copies degraded (0.1 %), 600 of 3000 copies misplaced (20.0 %)"
	if got := recovery(&r); got != left+"; nothing is copied at the moment" {
		t.Error(got)
	}
	r.BytesPerSecond, r.ObjectsPerSecond, r.SecondsLeft = 80<<20, 20, 31
	if got := recovery(&r); got != left+"; 80 MiB/s, 20 objects/s, about 31s left" {
		t.Error(got)
	}
}

func TestSpan(t *testing.T) {
	for seconds, want := range map[int]string{45: "45s", 200: "3m20s", 7500: "2h5m", 273600: "3d4h"} {
		if got := span(time.Duration(seconds) * time.Second); got != want {
			t.Error(got, want)
		}
	}
}

// TestColour: colours are where a terminal is, or where they are asked for.
func TestColour(t *testing.T) {
	row := []string{"  ✗ osd.3 \x1b[2J"}
	for colour, want := range map[Colour]string{
		Auto: "  ✗ osd.3  [2J\n", Never: "  ✗ osd.3  [2J\n", Always: "\x1b[31m  ✗\x1b[0m osd.3  [2J\n",
	} {
		var b strings.Builder
		Print(words.NewVisibleWriter(&b), colour, row)
		if b.String() != want {
			t.Errorf("%s: %q", colour, b.String())
		}
	}
	if new(Colour).Set("sometimes") == nil {
		t.Error("any word is taken")
	}
}

// TestReport shows plans as a terminal has them: the input is what the leader says.
func TestReport(t *testing.T) {
	datadriven.RunTest(t, "testdata/plan.txt", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		Report(&b, Colour(d.CmdArgs[0].Key), d.Input)
		return words.Visible(b.String())
	})
}
