package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The bounds of the design (section 8) for an orchestration in which nothing changes: "no write, no process started, under 10 ms of CPU per
// cluster beyond asking the storage system". No write means: none but that of status.nextOrchestration, which is made once in each interval
// before the work starts, so that the next leader knows when the cluster is due.
const (
	maxUnchanged = 10.0 // milliseconds
	// maxDue is what is judged of that one write: an orchestration at the edge of the measured time may have its write within.
	maxDue = 1.05
)

// beating are the writes of agents, of the leader for itself and of the API, whose number is not the same each time: no orchestration makes
// them.
var beating = map[string]bool{"leases": true, termWrites: true, "compact_rev_key": true, reportWrites: true}

// unchanged is what an orchestration costs in which nothing changes.
type unchanged struct {
	Clusters, HostsEach, DaemonsEach int
	// Load is the machine's load average at the end of each part: what others do at the same time makes all CPU times longer.
	Load []string
	// Runs are the orchestrations that were measured, by outcome.
	Runs map[string]float64
	// CPU is the server's time for each run in milliseconds, Asking the part of it in which the driver asked Ceph, and Engine that of the
	// engine, asking included. The rest is what the API, etcd and the garbage collector do for a run.
	CPU, Asking, Engine float64
	// RestCores is what the server used without orchestrations, before and after.
	RestCores [2]float64
	// Due are the writes of when the next orchestration is due, Writes those of anything else by kind, beyond those that are made without
	// orchestrations; both for each run. AtRest are the latter, each second.
	Due            float64
	Writes, AtRest map[string]float64
	// Started are the processes that the server started.
	Started []string
}

// compare takes over what the server did more with orchestrations than without.
func (u *unchanged) compare(busy window, rest [2]window) {
	u.Runs, u.Started = busy.runs, busy.started
	u.Writes, u.AtRest = map[string]float64{}, map[string]float64{}
	beyond := func(of func(window) float64) float64 {
		each := (of(rest[0])/rest[0].took.Seconds() + of(rest[1])/rest[1].took.Seconds()) / 2
		return of(busy) - each*busy.took.Seconds()
	}
	n := max(beyond(func(w window) float64 { return total(w.runs) }), 1)
	more := func(of func(window) float64) float64 { return beyond(of) / n }
	u.CPU = more(func(w window) float64 { return 1000 * w.cpu.Seconds() })
	u.Asking = more(func(w window) float64 { return 1000 * w.asking.Seconds() })
	u.Engine = more(func(w window) float64 { return 1000 * w.engine.Seconds() })
	u.Due = more(func(w window) float64 { return float64(w.writes[dueWrites]) })
	for i, w := range rest {
		u.RestCores[i] = w.cpu.Seconds() / w.took.Seconds()
		for kind, count := range w.writes {
			u.AtRest[kind] += float64(count) / w.took.Seconds() / 2
		}
	}
	for kind := range busy.writes {
		if each := more(func(w window) float64 { return float64(w.writes[kind]) }); kind != dueWrites && (each > 0 || beating[kind]) {
			u.Writes[kind] = each
		}
	}
}

// runs is how many orchestrations were measured.
func (u *unchanged) runs() float64 { return total(u.Runs) }

func total(runs map[string]float64) (n float64) {
	for _, count := range runs {
		n += count
	}
	return n
}

// beyond is the CPU time of a run beyond asking Ceph, in milliseconds.
func (u *unchanged) beyond() float64 { return u.CPU - u.Asking }

func (u *unchanged) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\n%.0f orchestrations of %d clusters at rest, with %d daemons on %d hosts each; load average: %s\n\n",
		u.runs(), u.Clusters, u.DaemonsEach, u.HostsEach, strings.Join(u.Load, ", "))
	fmt.Fprintf(w, "for each orchestration\t\tbound\nCPU time of the server (ms)\t%.2f\t\n", u.CPU)
	fmt.Fprintf(w, "  to ask Ceph\t%.2f\t\n  beyond that\t%.2f\t%.2f\n", u.Asking, u.beyond(), maxUnchanged)
	fmt.Fprintf(w, "    in the engine\t%.2f\t\n    in the API, in etcd, for garbage\t%.2f\t\n", u.Engine-u.Asking, u.CPU-u.Engine)
	fmt.Fprintf(w, "writes of %s\t%.2f\t1\n", dueWrites, u.Due)
	for _, kind := range slices.Sorted(maps.Keys(u.Writes)) {
		if bound := "0"; u.Writes[kind] != 0 {
			if beating[kind] {
				bound = "(goes on anyway: more than without)"
			}
			fmt.Fprintf(w, "writes of %s\t%.3f\t%s\n", kind, u.Writes[kind], bound)
		}
	}
	fmt.Fprintf(w, "writes of anything else\t0\t0\nprocesses started, by all\t%d\t0\n\nwithout orchestrations\n", len(u.Started))
	fmt.Fprintf(w, "CPU time of the server, before and after (of a core)\t%.3f, %.3f\n", u.RestCores[0], u.RestCores[1])
	for _, kind := range slices.Sorted(maps.Keys(u.AtRest)) {
		fmt.Fprintf(w, "writes of %s (each second)\t%.2f\n", kind, u.AtRest[kind])
	}
	return w.Flush()
}

// judge says which bounds are not kept.
func (u *unchanged) judge() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for outcome, n := range u.Runs {
		if outcome != string(api.OutcomeUnchanged) {
			fail("%.0f orchestrations were %s, so something did change", n, outcome)
		}
	}
	if u.runs() == 0 {
		fail("there was no orchestration to be measured")
	}
	if u.beyond() > maxUnchanged {
		fail("an orchestration in which nothing changes takes %.2f ms of CPU time beyond asking Ceph, and the bound is %.0f ms", u.beyond(), maxUnchanged)
	}
	if u.runs() > 0 && u.Due <= 0 {
		fail("no write of when the next orchestration is due was seen: the writes were not watched")
	}
	if u.Due > maxDue {
		fail("when the next orchestration is due was written %.2f times for each", u.Due)
	}
	for _, kind := range slices.Sorted(maps.Keys(u.Writes)) {
		if !beating[kind] {
			fail("an orchestration in which nothing changes wrote %s (%.3f for each)", kind, u.Writes[kind])
		}
	}
	if len(u.Started) > 0 {
		fail("orchestrations in which nothing changes started %d processes: %s", len(u.Started), strings.Join(u.Started, ", "))
	}
	return errors.Join(errs...)
}
