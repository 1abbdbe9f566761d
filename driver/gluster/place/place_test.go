package place

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSets(t *testing.T) {
	stores := []Store{
		{Node: "a", Zone: 1, Name: "d1", Size: 100, Room: 100},
		{Node: "a", Zone: 1, Name: "d2", Size: 90, Room: 90},
		{Node: "b", Zone: 1, Name: "d1", Size: 100, Room: 100},
		{Node: "c", Zone: 2, Name: "d1", Size: 50, Room: 50},
		{Node: "d", Zone: 3, Name: "d1", Size: 20, Room: 20},
	}
	show := func(sets [][]Spot) (text []string) {
		for _, set := range sets {
			line := ""
			for _, s := range set {
				line += fmt.Sprintf("%s/%s ", s.Node, s.Store)
			}
			text = append(text, line)
		}
		return text
	}
	for _, test := range []struct {
		name    string
		members []int64
		n       int
		want    []string
	}{
		{"three zones", []int64{20, 20, 20}, 1, []string{"a/d1 c/d1 d/d1 "}},
		{"two zones have room", []int64{40, 40, 40}, 1, []string{"a/d1 c/d1 b/d1 "}},
		{"an arbiter where a copy has no room", []int64{50, 50, 20}, 1, []string{"a/d1 c/d1 d/d1 "}},
		{"as many as there is room for", []int64{60, 60}, 5, []string{"a/d1 b/d1 "}},
		{"single bricks", []int64{60}, 9, []string{"a/d1 ", "b/d1 ", "a/d2 "}},
		{"two of a node with more disks, and one of another", []int64{30}, 3, []string{"a/d1 ", "b/d1 ", "c/d1 "}},
		{"no room", []int64{51, 51, 51}, 1, nil},
		{"more than there are nodes", []int64{1, 1, 1, 1, 1}, 1, nil},
	} {
		if diff := cmp.Diff(test.want, show(Sets(stores, test.members, test.n, 0))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if Nodes(stores, 60) != 2 || Nodes(stores, 20) != 4 {
		t.Errorf("nodes with room: %d, %d", Nodes(stores, 60), Nodes(stores, 20))
	}
}

// Of two nodes whose emptiest disks are alike the one is taken that has nothing at all yet; and of a small one and a large one that which has
// the larger share left.
func TestBeside_emptiestNode(t *testing.T) {
	set := []Spot{{Node: "z", Zone: 9}}
	for _, test := range []struct {
		name, want string
		stores     []Store
	}{
		{"a disk that is empty beside one that is not", "d", []Store{
			{Node: "a", Name: "d1", Size: 100, Room: 40},
			{Node: "a", Name: "d2", Size: 100, Room: 95},
			{Node: "d", Name: "d1", Size: 100, Room: 95},
			{Node: "d", Name: "d2", Size: 100, Room: 95},
		}},
		{"small and empty", "b", []Store{{Node: "a", Name: "d1", Size: 1000, Room: 500}, {Node: "b", Name: "d1", Size: 200, Room: 190}}},
		{"no room for it", "a", []Store{{Node: "a", Name: "d1", Size: 1000, Room: 500}, {Node: "b", Name: "d1", Size: 50, Room: 48}}},
		{"alike but for noise: the larger", "b", []Store{{Node: "a", Name: "d1", Size: 1000, Room: 950}, {Node: "b", Name: "d1", Size: 2000, Room: 1899}}},
		{"another zone comes first", "a", []Store{{Node: "a", Name: "d1", Zone: 1, Size: 100, Room: 60}, {Node: "b", Name: "d1", Zone: 9, Size: 100, Room: 95}}},
	} {
		if spot, ok := Beside(test.stores, set, 50, 0); !ok || spot.Node != test.want {
			t.Errorf("%s: %+v, want node %s", test.name, spot, test.want)
		}
	}
}

func genStores(t *rapid.T) []Store {
	var stores []Store
	for n := range rapid.IntRange(0, 8).Draw(t, "nodes") {
		zone := int32(rapid.IntRange(1, 4).Draw(t, "zone"))
		for s := range rapid.IntRange(0, 3).Draw(t, "stores") {
			stores = append(stores, Store{
				Node: fmt.Sprintf("n%d", n), Zone: zone, Name: fmt.Sprintf("d%d", s), Size: 100, Room: int64(rapid.IntRange(0, 100).Draw(t, "room")),
			})
		}
	}
	return stores
}

// What is chosen keeps all rules, whatever there is; and something is chosen where it can be.
func TestSets_rules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stores := genStores(t)
		before := slices.Clone(stores)
		size := int64(rapid.IntRange(1, 60).Draw(t, "size"))
		members := slices.Repeat([]int64{size}, rapid.IntRange(1, 6).Draw(t, "members"))
		if len(members) == 3 && rapid.Bool().Draw(t, "arbiter") {
			members[2] = max(1, size/10)
		}
		perZone := rapid.IntRange(0, 2).Draw(t, "perZone")
		sets := Sets(stores, members, rapid.IntRange(1, 4).Draw(t, "sets"), perZone)
		if !cmp.Equal(before, stores) {
			t.Fatal("the stores were changed")
		}
		promised := map[string]int64{}
		for _, set := range sets {
			checkSet(t, stores, members, set, promised)
			checkBound(t, set, perZone)
		}
		for _, s := range stores {
			if promised[s.Node+"/"+s.Name] > s.Room {
				t.Fatalf("%s/%s has room for %d and was promised %d", s.Node, s.Name, s.Room, promised[s.Node+"/"+s.Name])
			}
		}
		if perZone == 0 && (Nodes(stores, size) >= len(members)) != (len(sets) > 0) && members[len(members)-1] == size {
			t.Fatalf("%d nodes have room for bricks of %d: %d sets of %d", Nodes(stores, size), size, len(sets), len(members))
		}
		checkZones(t, stores, members, sets)
		slices.Reverse(stores)
		if diff := cmp.Diff(sets, Sets(stores, members, len(sets), perZone)); len(sets) > 0 && diff != "" {
			t.Fatalf("the order of the stores matters:\n%s", diff)
		}
	})
}

func checkSet(t *rapid.T, stores []Store, members []int64, set []Spot, promised map[string]int64) {
	nodes := map[string]bool{}
	for i, s := range set {
		if nodes[s.Node] {
			t.Fatalf("two bricks of one set on %s: %+v", s.Node, set)
		}
		nodes[s.Node] = true
		promised[s.Node+"/"+s.Store] += s.Size
		known := slices.ContainsFunc(stores, func(x Store) bool { return x.Node == s.Node && x.Name == s.Store && x.Zone == s.Zone })
		if s.Size != members[i] || !known {
			t.Fatalf("brick %d of %v: %+v", i, members, s)
		}
	}
	if len(set) != len(members) {
		t.Fatalf("a set of %d, want %d", len(set), len(members))
	}
}

// checkBound: no zone has more bricks of a set than it may.
func checkBound(t *rapid.T, set []Spot, perZone int) {
	zones := map[int32]int{}
	for _, s := range set {
		if zones[s.Zone]++; perZone > 0 && zones[s.Zone] > perZone {
			t.Fatalf("more than %d bricks of a set in zone %d: %+v", perZone, s.Zone, set)
		}
	}
}

// checkZones: the first set, for which all room is free, lies in as many zones as can be.
func checkZones(t *rapid.T, stores []Store, members []int64, sets [][]Spot) {
	if len(sets) == 0 {
		return
	}
	possible, used := map[int32]bool{}, map[int32]bool{}
	for _, s := range stores {
		if s.Room >= slices.Max(members) {
			possible[s.Zone] = true
		}
	}
	for _, s := range sets[0] {
		used[s.Zone] = true
	}
	if len(used) < min(len(possible), len(members)) {
		t.Fatalf("bricks in %d zones, and %d have room: %+v", len(used), len(possible), sets[0])
	}
}
