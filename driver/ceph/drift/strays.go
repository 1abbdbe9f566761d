package drift

import (
	"iter"
	"math"
	"slices"

	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

// Strays remembers which OSDs have no place in CRUSH, as of a map of the OSDs and a CRUSH tree.
type Strays struct {
	epoch int
	tree  *crushmap.Tree
	found []int
}

// Find looks for them only when one of the maps is another one than the last time.
func (s *Strays) Find(epoch int, tree *crushmap.Tree, osds iter.Seq[int], up func(int) bool) []int {
	if s.tree == tree && s.epoch == epoch {
		return s.found
	}
	s.epoch, s.tree, s.found = epoch, tree, nil
	for id := range osds {
		if _, placed := tree.Places[id]; !placed && up(id) {
			s.found = append(s.found, id)
		}
	}
	slices.Sort(s.found)
	return s.found
}

// Sizes are the sizes of OSDs, as 'osd df' answers; of those that CRUSH does not have, too.
type Sizes struct {
	Nodes []size `json:"nodes"`
	Stray []size `json:"stray"`
}

type size struct {
	ID int   `json:"id"`
	KB int64 `json:"kb"`
}

// TiB is the size of an OSD, which is what Ceph itself takes for its weight in CRUSH.
func (s *Sizes) TiB(id int) (tib float64, known bool) {
	const least = 1e-5 // as of the OSD itself
	for _, x := range slices.Concat(s.Nodes, s.Stray) {
		if x.ID == id && x.KB > 0 {
			return max(math.Round(float64(x.KB)/(1<<30)*1e4)/1e4, least), true
		}
	}
	return 0, false
}
