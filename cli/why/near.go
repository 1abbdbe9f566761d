package why

import (
	"cmp"
	"slices"
	"strings"
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
			if d := distance(object, n); d < best.far {
				best = candidate{n, d}
			}
		}
		if best.far <= max(2, len(object)/3) {
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

// distance is how many letters have to be put in, left out or replaced to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
