// Command orch measures what 'ceph orch' costs: how long the agent's socket takes to answer its
// calls in a large cluster, how much later a new cluster is ready with spec.ceph.orch Enabled, and
// what the module adds to an active mgr that is idle.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// options are the command line.
type options struct {
	only           string
	calls          int
	pairs          int
	idle           time.Duration
	binary         string
	http2, noBound bool
	verbose        bool
	profile        string
}

// part is a part of the benchmark. It writes a table for a person, and returns an error where a
// bound is exceeded.
type part struct {
	name string
	run  func(options, *tabwriter.Writer) error
}

var parts = []part{{"socket", socketPart}, {"ceph", cephPart}}

func main() {
	hosts.MaybeInit()
	rados.MaybeServe()
	o := options{}
	flag.StringVar(&o.only, "only", "", "socket or ceph: one part alone; socket needs no root")
	flag.IntVar(&o.calls, "calls", 200, "how often each read is measured, and again beside a call that hangs")
	flag.IntVar(&o.pairs, "pairs", 5, "how many pairs of clusters are brought up, after one that does not count")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long an active mgr is watched; 0 for not at all")
	flag.StringVar(&o.binary, "binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	flag.BoolVar(&o.http2, "http2", false, "TLS and HTTP/2 between agent and server")
	flag.StringVar(&o.profile, "profile", "", "write a CPU profile of the calls at the socket to this file")
	flag.BoolVar(&o.verbose, "v", false, "tell what 'holdfast apply --wait' says, and when")
	flag.BoolVar(&o.noBound, "no-bound", false, "end well also where a bound is exceeded")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "orch:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	known := slices.ContainsFunc(parts, func(p part) bool { return p.name == o.only })
	if o.only != "" && !known {
		return fmt.Errorf("-only %s is not known: use socket or ceph", o.only)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	var failed error
	for _, p := range parts {
		if o.only == "" || o.only == p.name {
			failed = errors.Join(failed, p.run(o, w), w.Flush())
		}
	}
	return failed
}
