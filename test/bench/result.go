package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// result is what a benchmark found out. Times are in seconds.
type result struct {
	// Load is the machine's load average before the first round.
	Load   string  `json:"load"`
	Rounds []round `json:"rounds"`
	// Ratios are Holdfast's time / the script's, pair by pair.
	Ratios []float64 `json:"ratios,omitempty"`
	Ratio  *spread   `json:"ratio,omitempty"`
	Idle   []idler   `json:"idle,omitempty"`
}

// spread sums up some numbers.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf sums up numbers, of which there must be one.
func spreadOf(numbers []float64) spread {
	n := slices.Sorted(slices.Values(numbers))
	half := len(n) / 2
	median := n[half]
	if len(n)%2 == 0 {
		median = (n[half-1] + n[half]) / 2
	}
	return spread{median, n[0], n[len(n)-1]}
}

// of returns the rounds of one side.
func (r *result) of(side string) []round {
	return slices.DeleteFunc(slices.Clone(r.Rounds), func(x round) bool { return x.Side != side })
}

// conclude compares the sides pair by pair, so that what slows the whole machine for a while slows both of a pair.
func (r *result) conclude() {
	script, holdfast := r.of(sideScript), r.of(sideHoldfast)
	for i := range min(len(script), len(holdfast)) {
		r.Ratios = append(r.Ratios, holdfast[i].Seconds/script[i].Seconds)
	}
	if len(r.Ratios) > 0 {
		s := spreadOf(r.Ratios)
		r.Ratio = &s
	}
}

// print writes tables for a person.
func (r *result) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nFrom nothing to a healthy cluster: %d mons, %d mgrs, %d OSDs; load average before: %s\n\n", mons, mgrs, osds, r.Load)
	r.printRounds(w)
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

func (r *result) printRounds(w io.Writer) {
	script, holdfast := r.of(sideScript), r.of(sideHoldfast)
	fmt.Fprintf(w, "round\tscript\tholdfast\tratio\t\n")
	for i := range max(len(script), len(holdfast)) {
		ratio := ""
		if i < len(r.Ratios) {
			ratio = fmt.Sprintf("%.2f", r.Ratios[i])
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t\n", i+1, timeOf(script, i), timeOf(holdfast, i), ratio)
	}
	for _, row := range []struct {
		name string
		pick func(spread) float64
	}{
		{"median", func(s spread) float64 { return s.Median }},
		{"least", func(s spread) float64 { return s.Min }},
		{"most", func(s spread) float64 { return s.Max }},
	} {
		ratio := ""
		if r.Ratio != nil {
			ratio = fmt.Sprintf("%.2f", row.pick(*r.Ratio))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", row.name, summary(script, row.pick), summary(holdfast, row.pick), ratio)
	}
	if r.Ratio != nil {
		fmt.Fprintf(w, "bound\t\t\t%.2f\t\n", bound)
	}
}

func timeOf(rounds []round, i int) string {
	if i >= len(rounds) {
		return ""
	}
	return fmt.Sprintf("%.2f", rounds[i].Seconds)
}

func summary(rounds []round, pick func(spread) float64) string {
	if len(rounds) == 0 {
		return ""
	}
	var all []float64
	for _, x := range rounds {
		all = append(all, x.Seconds)
	}
	return fmt.Sprintf("%.2f", pick(spreadOf(all)))
}

// compare prints the medians of both sides, and their difference.
func (r *result) compare(w io.Writer, names []string, numbers func(round) map[string]float64) {
	fmt.Fprintf(w, "\tscript\tholdfast\tdifference\t\n")
	for _, name := range names {
		script, inScript := medianOf(r.of(sideScript), name, numbers)
		holdfast, inHoldfast := medianOf(r.of(sideHoldfast), name, numbers)
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
	return spreadOf(all).Median, true
}

func orBlank(n float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f", n)
}
