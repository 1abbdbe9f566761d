package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// The bounds of the design (section 8). The lease is 5 s (control/leader).
const (
	maxFailOver = 7.0  // seconds: the lease + 2 s
	maxCPU      = 10.0 // milliseconds for each orchestration in which nothing changes
	maxStarted  = 0    // processes
)

// result is what was measured.
type result struct {
	// FailOvers are the seconds from kill -9 of the leader to the first write of the next one under its own term; Elected those to
	// the moment at which it had the lease.
	FailOvers []float64 `json:"failOverSeconds"`
	Elected   []float64 `json:"electedSeconds"`
	Unchanged unchanged `json:"unchanged"`
}

// unchanged is what an orchestration costs in which nothing changes.
type unchanged struct {
	Clusters int `json:"clusters"`
	Runs     int `json:"runs"`
	// CPU is milliseconds for each run, beyond what the server uses without any cluster.
	CPU float64 `json:"cpuMilliseconds"`
	// Writes are those of anything but the time of the next run; Schedule are the latter, for each run.
	Writes   int     `json:"writes"`
	Schedule float64 `json:"schedulePerRun"`
	// Started are processes that the server started meanwhile.
	Started int `json:"processesStarted"`
}

func (r *result) measure(t hosts.T, o options, binary string) {
	servers := loopback.Start(t, binary, 3)
	if o.watch > 0 {
		r.Unchanged = measureUnchanged(t, servers, o)
	}
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
	if u := r.Unchanged; u.Runs > 0 {
		fmt.Fprintf(w, "\n%d orchestrations of %d clusters in which nothing changes\n\n\t\tbound\t\n", u.Runs, u.Clusters)
		fmt.Fprintf(w, "CPU time for each (ms)\t%.2f\t%.2f\t\n", u.CPU, maxCPU)
		fmt.Fprintf(w, "processes started\t%d\t%d\t\n", u.Started, maxStarted)
		fmt.Fprintf(w, "writes\t%d\t0\t\n", u.Writes)
		fmt.Fprintf(w, "writes of when the next one is due, for each\t%.2f\t\t\n", u.Schedule)
	}
	return w.Flush()
}

// judge returns an error that names the bounds that were not kept.
func (r *result) judge() error {
	var errs []error
	if worst := percentile(r.FailOvers, 1); worst > maxFailOver {
		errs = append(errs, fmt.Errorf("a fail-over took %.2f s, and the bound is %.0f s", worst, maxFailOver))
	}
	u := r.Unchanged
	if u.CPU > maxCPU {
		errs = append(errs, fmt.Errorf("an orchestration in which nothing changes takes %.2f ms of CPU time, and the bound is %.0f ms", u.CPU, maxCPU))
	}
	if u.Writes > 0 || u.Started > maxStarted {
		errs = append(errs, fmt.Errorf("orchestrations in which nothing changes wrote %d times and started %d processes", u.Writes, u.Started))
	}
	return errors.Join(errs...)
}
