// Package place chooses where the bricks of GlusterFS volumes lie: on which node, and on which of its devices and directories.
// It is pure, and equal arguments give equal results.
//
// The rules are those of heketi's ring: the bricks of one set never share a node, they lie in different zones as long as there
// are zones that have none yet, and among what is left the emptiest store of the emptiest node is taken. A node is as empty as the share
// of its stores' whole size says that may still be promised, so that small nodes and large ones fill alike.
package place

import (
	"cmp"
	"slices"
)

// Store is a device or directory of a node.
type Store struct {
	Node string
	Zone int32
	Name string
	// Size is how many bytes it has, and Room how many of them may still be promised to bricks.
	Size, Room int64
	// Bricks is how many lie there already: of two stores with the same room the one with fewer is taken.
	Bricks int
}

// Spot is where a brick shall lie.
type Spot struct {
	Node, Store string
	Zone        int32
	Size        int64
}

// Sets chooses n sets; members are the sizes of the bricks of one set, in their order, and perZone how many of them one zone may have
// at most; 0 is no bound. It returns fewer sets where there is no room for more. stores is not changed.
func Sets(stores []Store, members []int64, n, perZone int) [][]Spot {
	stores = slices.Clone(stores)
	var sets [][]Spot
	for range n {
		set := one(stores, members, perZone)
		if set == nil {
			return sets
		}
		sets = append(sets, set)
	}
	return sets
}

// one chooses a set and takes its room from the stores; nil when there is none.
func one(stores []Store, members []int64, perZone int) []Spot {
	var set []Spot
	for _, size := range members {
		spot, ok := Beside(stores, set, size, perZone)
		if !ok {
			return nil
		}
		set = append(set, spot)
	}
	for _, spot := range set {
		i := slices.IndexFunc(stores, func(s Store) bool { return s.Node == spot.Node && s.Name == spot.Store })
		stores[i].Room -= spot.Size
		stores[i].Bricks++
	}
	return set
}

// Beside chooses a spot for one more brick of a set that has bricks already. One zone may have perZone of them at most; 0 is no bound.
func Beside(stores []Store, set []Spot, size int64, perZone int) (Spot, bool) {
	zones, nodes := map[int32]int{}, map[string]bool{}
	for _, s := range set {
		zones[s.Zone]++
		nodes[s.Node] = true
	}
	var best *Store
	full := fullness(stores)
	for i := range stores {
		s := &stores[i]
		if s.Room < size || nodes[s.Node] || perZone > 0 && zones[s.Zone] >= perZone {
			continue
		}
		if best == nil || better(s, best, zones, full) {
			best = s
		}
	}
	if best == nil {
		return Spot{}, false
	}
	return Spot{Node: best.Node, Store: best.Name, Zone: best.Zone, Size: size}, true
}

// better says whether a is a better place than b beside bricks in these zones.
func better(a, b *Store, zones map[int32]int, full map[string]int64) bool {
	return cmp.Or(
		cmp.Compare(zones[a.Zone], zones[b.Zone]),
		cmp.Compare(full[a.Node], full[b.Node]),
		cmp.Compare(b.Room, a.Room),
		cmp.Compare(a.Bricks, b.Bricks),
		cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// fullness is how full each node is, in steps of two percent: less is noise of its file systems.
func fullness(stores []Store) map[string]int64 {
	const steps = 50
	size, room := map[string]int64{}, map[string]int64{}
	for _, s := range stores {
		size[s.Node] += s.Size
		room[s.Node] += s.Room
	}
	full := map[string]int64{}
	for n := range size {
		full[n] = steps - steps*room[n]/max(1, size[n])
	}
	return full
}

// Nodes is how many nodes have a store with room for a brick of this size.
func Nodes(stores []Store, size int64) int {
	nodes := map[string]bool{}
	for _, s := range stores {
		if s.Room >= size {
			nodes[s.Node] = true
		}
	}
	return len(nodes)
}
