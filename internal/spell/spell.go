// Package spell finds out what may have been meant by a name that was misspelt.
package spell

import "math"

// Distance is how many letters (bytes) have to be put in, left out or replaced to make b of a: the Levenshtein distance.
func Distance(a, b string) int {
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

// Alike says whether a name that is so far from what was written may have been meant: a third of the letters may differ, or two.
func Alike(written string, distance int) bool { return distance <= max(2, len(written)/3) }

// Nearest returns the name that is most like the one that was written; empty when none is like it.
func Nearest(name string, names []string) string {
	best, least := "", math.MaxInt
	for _, n := range names {
		if d := Distance(name, n); d < least && Alike(name, d) {
			best, least = n, d
		}
	}
	return best
}
