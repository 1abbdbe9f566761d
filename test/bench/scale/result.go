package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// The bounds of the design (section 8) for 1,000 hosts with 10,000 daemons.
const (
	maxAge      = 10.0 // seconds
	maxCores    = 1.0
	maxResident = 1024.0 // MiB
	maxReaction = 1.0    // second
)

// result is what was measured. Times are in seconds.
type result struct {
	Hosts, Daemons, Clusters int
	Join, BringUp            *cost
	// Age is how old the newest report of each host was: the highest of what was seen each second.
	Age struct{ P50, P99, Max float64 }
	// Rest is what the server used while nothing happened after all had come up, Later the same when some daemons and hosts had changed since,
	// Restarted after it was started anew, and AgentCores what all agents together did.
	Rest, Later, Restarted resting
	AgentCores             float64
	// Writes are the requests that wrote something meanwhile, per second, by resource; those of agents among them.
	Writes map[string]float64
	// DatabaseMiB is how large etcd's database was at the end, and InUse how much of it held something.
	DatabaseMiB, InUseMiB, GrowthMiBPerMinute float64
	Reaction                                  reaction
	// Unchanged is what was measured in the place of all from Age on, if that was asked for.
	Unchanged *unchanged
}

// resting is what a server uses while nothing happens. Memory says what ResidentMiB is made of.
type resting struct {
	Cores, ResidentMiB float64
	Memory             memory
}

// compare takes over what changed in the metrics between two moments.
func (r *result) compare(before, after map[string]float64, took time.Duration) {
	r.Writes = map[string]float64{}
	for what, n := range requests(before, after) {
		if verb, _, _ := strings.Cut(what, " "); verb != "GET" && verb != "LIST" && verb != "WATCH" {
			r.Writes[what] = n / took.Seconds()
		}
	}
	const size, used = "etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes"
	r.DatabaseMiB, r.InUseMiB = after[size]/(1<<20), after[used]/(1<<20)
	r.GrowthMiBPerMinute = (after[size] - before[size]) / (1 << 20) / took.Minutes()
}

// label is the value of a label in "a="x",b="y"}".
func label(labels, name string) string {
	for pair := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

func (r *result) print(w io.Writer) error {
	if r.Unchanged != nil {
		return r.Unchanged.print(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	row("fleet", "%d hosts, %d daemons, %d clusters", r.Hosts, r.Daemons, r.Clusters)
	row("all hosts joined and heard", "%.0f s", r.Join.Seconds)
	r.Join.each(t, "host", r.Hosts)
	row("all clusters ready", "%.0f s", r.BringUp.Seconds)
	r.BringUp.each(t, "daemon", r.Daemons)
	row("age of the hosts' newest reports", "p50 %.1f s, p99 %.1f s, oldest %.1f s (bound %.0f s)", r.Age.P50, r.Age.P99, r.Age.Max, maxAge)
	tell := func(what string, used resting) {
		row(what, "%.2f of a core (bound %.0f), %.0f MiB (bound %.0f)", used.Cores, maxCores, used.ResidentMiB, maxResident)
		row("  of its memory", "%s", used.Memory)
	}
	tell("leader at rest", r.Rest)
	tell("the same, after some changes", r.Later)
	tell("the same, started anew", r.Restarted)
	row("all agents at rest", "%.2f of a core", r.AgentCores)
	for _, what := range slices.Sorted(maps.Keys(r.Writes)) {
		row("  writes at rest: "+what, "%.2f /s", r.Writes[what])
	}
	row("database", "%.0f MiB, %.0f MiB of it used, growing by %.1f MiB a minute", r.DatabaseMiB, r.InUseMiB, r.GrowthMiBPerMinute)
	for _, x := range r.Reaction.all() {
		row(x.what, "p50 %.2f s, most %.2f s of %d (bound %.0f s)", quantile(x.times, 0.5), quantile(x.times, 1), len(x.times), maxReaction)
	}
	return t.Flush()
}

type reactions struct {
	what  string
	times []float64
}

func (x *reaction) all() []reactions {
	return []reactions{
		{"a daemon ends: its event", x.Event}, {"a daemon ends: the status says so", x.Decision}, {"a host's mode: its daemons are told", x.Order},
	}
}

// judge says which bounds are not kept. Reactions are judged by their median: the machine that runs the fleet runs the server, too.
func (r *result) judge() error {
	if r.Unchanged != nil {
		return r.Unchanged.judge()
	}
	var errs []error
	check := func(what string, value, bound float64) {
		if value > bound {
			errs = append(errs, fmt.Errorf("%s is %.2f, and the bound is %.2f", what, value, bound))
		}
	}
	check("the age of the oldest report in seconds", r.Age.Max, maxAge)
	for what, used := range map[string]resting{"after the bring-up": r.Rest, "after some changes": r.Later, "started anew": r.Restarted} {
		check("what the leader uses at rest, "+what+", in cores,", used.Cores, maxCores)
		check("the leader's memory, "+what+", in MiB", used.ResidentMiB, maxResident)
	}
	for _, x := range r.Reaction.all() {
		check(x.what+", median in seconds,", quantile(x.times, 0.5), maxReaction)
	}
	for what := range r.Writes {
		if !atRest[what] {
			errs = append(errs, fmt.Errorf("something was written while nothing happened: %s", what))
		}
	}
	return errors.Join(errs...)
}

// atRest are the writes that belong to a fleet at rest: heartbeats, the leader's own lease, the time of each cluster's next run.
var atRest = map[string]bool{"PATCH leases": true, "PUT leases": true, "PUT storageclusters/status": true}

func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
