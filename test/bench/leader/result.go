package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// maxFailOver is the bound of the design (section 8) in seconds: the lease, which is 5 s (control/leader), + 2 s.
const maxFailOver = 7.0

// result is what was measured.
type result struct {
	// FailOvers are the seconds from kill -9 of the leader to the first write of the next one under its own term; Elected those to
	// the moment at which it had the lease.
	FailOvers []float64 `json:"failOverSeconds"`
	Elected   []float64 `json:"electedSeconds"`
}

func (r *result) measure(t hosts.T, o options, binary string) {
	servers := loopback.Start(t, binary, 3)
	declareClusters(t, servers)
	for n := range o.kills {
		f := failOver(t, servers)
		r.FailOvers, r.Elected = append(r.FailOvers, f.acts.Seconds()), append(r.Elected, f.elected.Seconds())
		t.Logf("kill %d of %d: the next leader has the lease after %.2f s and acts after %.2f s", n+1, o.kills, f.elected.Seconds(), f.acts.Seconds())
	}
}

// percentile of numbers; the nearest one that was measured.
func percentile(numbers []float64, p float64) float64 {
	if len(numbers) == 0 {
		return math.NaN()
	}
	n := slices.Sorted(slices.Values(numbers))
	return n[max(0, int(math.Ceil(p*float64(len(n))))-1)]
}

// print writes tables for a person.
func (r *result) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	if len(r.FailOvers) > 0 {
		fmt.Fprintf(w, "\nAfter kill -9 of the leader, %d times (s)\n\n\tp50\tp90\tmax\tbound\t\n", len(r.FailOvers))
		row := func(name string, n []float64, bound string) {
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%s\t\n", name, percentile(n, .5), percentile(n, .9), percentile(n, 1), bound)
		}
		row("the next one has the lease", r.Elected, "")
		row("and has written", r.FailOvers, fmt.Sprintf("%.2f", maxFailOver))
	}
	return w.Flush()
}

// judge returns an error where the bound was not kept.
func (r *result) judge() error {
	if worst := percentile(r.FailOvers, 1); worst > maxFailOver {
		return fmt.Errorf("a fail-over took %.2f s, and the bound is %.0f s", worst, maxFailOver)
	}
	return nil
}
