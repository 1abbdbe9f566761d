package why

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/spell"
)

// nearest names up to three things whose names are like what was asked for; empty where none is.
func nearest(object string, subjects []subject) string {
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	for _, s := range subjects {
		best := candidate{far: len(object)}
		for _, n := range s.names {
			if d := spell.Distance(object, n); d < best.far {
				best = candidate{n, d}
			}
		}
		if best.name != "" && spell.Alike(object, best.far) {
			all = append(all, best)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	names := make([]string, min(3, len(all)))
	for i := range names {
		names[i] = all[i].name
	}
	return strings.Join(names, ", ")
}
