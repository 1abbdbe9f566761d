package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
)

// result is what a benchmark found out. Times are in seconds.
type result struct {
	// Load is the machine's load average before the first round.
	Load   string  `json:"load"`
	Rounds []round `json:"rounds"`
	// Ratios are Holdfast's time / the script's, pair by pair.
	Ratios []float64    `json:"ratios,omitempty"`
	Ratio  *pair.Spread `json:"ratio,omitempty"`
	Idle   []idler      `json:"idle,omitempty"`
}

// of returns the rounds of one side.
func (r *result) of(side string) []round {
	return slices.DeleteFunc(slices.Clone(r.Rounds), func(x round) bool { return x.Side != side })
}

// times are how long the sides took.
func (r *result) times() pair.Times {
	times := pair.Times{}
	for _, x := range r.Rounds {
		times[x.Side] = append(times[x.Side], x.Seconds)
	}
	return times
}

// conclude compares the sides.
func (r *result) conclude() { r.Ratios, r.Ratio = r.times().Ratios(), r.times().Ratio() }

// print writes tables for a person.
func (r *result) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nFrom nothing to a healthy cluster: %d mons, %d mgrs, %d OSDs; load average before: %s\n\n", mons, mgrs, osds, r.Load)
	r.times().Print(w, bound)
	fmt.Fprintf(w, "\nWhen what was seen (medians, in s)\n\n")
	r.compare(w, milestones, func(x round) map[string]float64 { return x.Milestones })
	who := map[string]bool{}
	for _, x := range r.Rounds {
		for name := range x.CPU {
			who[name] = true
		}
	}
	fmt.Fprintf(w, "\nCPU time by who used it (medians, in s)\n\n")
	r.compare(w, slices.Sorted(maps.Keys(who)), func(x round) map[string]float64 { return x.CPU })
	if len(r.Idle) > 0 {
		fmt.Fprintf(w, "\nServers while the cluster is healthy and nothing happens\n\nhost\trole\tCPU\tmemory\tlibrados\t\n")
		for _, i := range r.Idle {
			fmt.Fprintf(w, "%s\t\n", i)
		}
	}
	return w.Flush()
}

// compare prints the medians of both sides, and their difference.
func (r *result) compare(w io.Writer, names []string, numbers func(round) map[string]float64) {
	fmt.Fprintf(w, "\tscript\tholdfast\tdifference\t\n")
	for _, name := range names {
		script, inScript := medianOf(r.of(pair.Script), name, numbers)
		holdfast, inHoldfast := medianOf(r.of(pair.Holdfast), name, numbers)
		difference := ""
		if inScript && inHoldfast {
			difference = fmt.Sprintf("%+.2f", holdfast-script)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", name, orBlank(script, inScript), orBlank(holdfast, inHoldfast), difference)
	}
}

func medianOf(rounds []round, name string, numbers func(round) map[string]float64) (float64, bool) {
	var all []float64
	for _, x := range rounds {
		if n, ok := numbers(x)[name]; ok {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return pair.SpreadOf(all).Median, true
}

func orBlank(n float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f", n)
}
