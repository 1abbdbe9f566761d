// Package pair compares two ways to the same end, Holdfast's and the shortest hand-written script's, in pairs: what slows the whole
// machine for a while slows both of a pair.
package pair

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// The two sides.
const (
	Script   = "script"
	Holdfast = "holdfast"
)

// CheckSide refuses what is neither a side nor empty, which stands for both.
func CheckSide(side string) error {
	if side != "" && side != Script && side != Holdfast {
		return fmt.Errorf("-only %s is not known: use %s or %s", side, Script, Holdfast)
	}
	return nil
}

// Program is the absolute path of the holdfast program; an error if it is not there, and needed.
func Program(path string, needed bool) (string, error) {
	program, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err != nil && needed {
		return "", fmt.Errorf("there is no %s: run 'make build' first", program)
	}
	return program, nil
}

// Turns are the rounds and their sides: the sides take turns, and in turns at being the first. Round 0 warms the machine's caches
// and does not count. With only, that side alone has its turns.
func Turns(rounds int, only string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for n := range rounds + 1 {
			order := []string{Script, Holdfast}
			if n%2 == 0 {
				slices.Reverse(order)
			}
			for _, side := range order {
				if (only == "" || only == side) && !yield(n, side) {
					return
				}
			}
		}
	}
}

// Spread sums up some numbers.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf sums up numbers, of which there must be one.
func SpreadOf(numbers []float64) Spread {
	n := slices.Sorted(slices.Values(numbers))
	half := len(n) / 2
	median := n[half]
	if len(n)%2 == 0 {
		median = (n[half-1] + n[half]) / 2
	}
	return Spread{median, n[0], n[len(n)-1]}
}

// Times are how long each side took in each of its turns, in seconds.
type Times map[string][]float64

// Ratios are Holdfast's time / the script's, pair by pair.
func (t Times) Ratios() []float64 {
	var ratios []float64
	for i := range min(len(t[Script]), len(t[Holdfast])) {
		ratios = append(ratios, t[Holdfast][i]/t[Script][i])
	}
	return ratios
}

// Ratio sums up the ratios; nil when there is no pair.
func (t Times) Ratio() *Spread {
	ratios := t.Ratios()
	if len(ratios) == 0 {
		return nil
	}
	s := SpreadOf(ratios)
	return &s
}

// Judge returns an error when the median ratio is above the bound. Without a pair there is nothing to judge.
func (t Times) Judge(bound float64) error {
	if ratio := t.Ratio(); ratio != nil && ratio.Median > bound {
		return fmt.Errorf("holdfast takes %.2f times as long as the script (median of %d pairs), and the bound is %.1f",
			ratio.Median, len(t.Ratios()), bound)
	}
	return nil
}
