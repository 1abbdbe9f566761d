package glusterd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport_roundTrip(t *testing.T) {
	r := &Report{
		UUID: "u1", Peers: []Peer{{Address: "10.0.0.2", UUID: "u2", Connected: true, State: PeerInCluster}},
		Stores: []Store{{Name: "/data", Path: "/data", Size: 100, Free: 50}},
		Pool: &Pool{Volumes: []Volume{{
			Name: "v", ID: "id", State: VolumeStarted, Replica: 3,
			Bricks: []Brick{{Address: "10.0.0.2", Path: "/data/v.1", State: BrickOnline, Heal: &Heal{}}},
		}}},
	}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Error(diff)
	}
	if r, err := Parse(""); r != nil || err != nil {
		t.Errorf("of no text: %v, %v", r, err)
	}
	if _, err := Parse("{"); err == nil {
		t.Error("half a report was read")
	}
}

func TestSets(t *testing.T) {
	bricks := make([]Brick, 6)
	for want, v := range map[int]Volume{2: {Replica: 3, Arbiter: 1}, 1: {Disperse: 6, Redundancy: 2}, 6: {}} {
		if v.Bricks = bricks; len(v.Sets()) != want {
			t.Errorf("%+v has %d sets, want %d", v, len(v.Sets()), want)
		}
	}
}

func TestStoreName(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"wwn-0x5000c500", "file-/srv/disk", "file--srv-disk", "..", ".a", strings.Repeat("x", 60), strings.Repeat("x", 61)} {
		name := StoreName(id)
		if seen[name] != "" || len(name) > maxStoreName || strings.HasPrefix(name, ".") || strings.Contains(name, "/") || name != StoreName(id) {
			t.Errorf("%q: %q", id, name)
		}
		seen[name] = id
	}
	if StoreName("wwn-0x5000c500") != "wwn-0x5000c500" {
		t.Error("an identity that is a good name was changed")
	}
}

func TestRoundFree(t *testing.T) {
	for _, c := range [][3]int64{{1000, 999, 980}, {1000, 1000, 1000}, {10, 7, 7}, {0, 0, 0}} {
		if got := RoundFree(c[0], c[1]); got != c[2] {
			t.Errorf("RoundFree(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
