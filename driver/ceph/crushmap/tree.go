package crushmap

import "fmt"

// Bucket is a bucket of CRUSH, or an OSD that has a place in it.
type Bucket struct {
	Type string
	// In are the names of those that it is in, by their types, such as rack and root.
	In map[string]string
	// Class is the device class of an OSD.
	Class string
	// Weight is that of the OSDs below it: with none it holds no data.
	Weight float64
}

// Tree is what CRUSH has: the places of OSDs, its buckets and OSDs by their names, and how many children hosts
// have.
type Tree struct {
	Places   map[int]Place
	Buckets  map[string]Bucket
	Children map[string]int
}

// Node is a bucket of CRUSH, or an OSD, which has no children and a number that is not negative.
type Node struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Class    string  `json:"device_class"`
	Weight   float64 `json:"crush_weight"`
	Children []int   `json:"children"`
}

// TreeOf reads the nodes of 'osd tree'.
func TreeOf(nodes []Node) *Tree {
	t := &Tree{Places: map[int]Place{}, Buckets: map[string]Bucket{}, Children: map[string]int{}}
	parents := map[int]*Node{}
	for i := range nodes {
		for _, child := range nodes[i].Children {
			parents[child] = &nodes[i]
		}
	}
	above := func(id int) map[string]string {
		in := map[string]string{}
		for n := parents[id]; n != nil && in[n.Type] == ""; n = parents[n.ID] {
			in[n.Type] = n.Name
		}
		return in
	}
	for _, n := range nodes {
		switch {
		case n.ID < 0:
			t.Buckets[n.Name] = Bucket{Type: n.Type, In: above(n.ID)}
			if n.Type == "host" {
				t.Children[n.Name] = len(n.Children)
			}
		case parents[n.ID] != nil:
			p := Place{Class: n.Class, Weight: n.Weight, Buckets: above(n.ID)}
			p.Buckets["osd"] = osdName(n.ID)
			t.Places[n.ID] = p
			t.Buckets[osdName(n.ID)] = Bucket{Type: "osd", In: above(n.ID), Class: n.Class}
		}
	}
	t.weigh()
	return t
}

// weigh gives each bucket the weight of all OSDs below it.
func (t *Tree) weigh() {
	for _, p := range t.Places {
		for _, name := range p.Buckets {
			if b, is := t.Buckets[name]; is {
				b.Weight += p.Weight
				t.Buckets[name] = b
			}
		}
	}
}

func osdName(id int) string { return fmt.Sprintf("osd.%d", id) }
