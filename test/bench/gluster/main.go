// Command gluster measures how long Holdfast takes from nothing to a GlusterFS volume that is mounted and written to, as a ratio to the
// shortest hand-written script (bringup.sh) that does the same on the same hosts, in alternation, in one run.
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// bound is the highest ratio Holdfast / script that passes. When it was set the median was 2.1: each command is an Action and waits for
// the report of what came of it, of which there are five, and glusterd's own start takes 3.8 s of both sides.
const bound = 2.5

// options are the command line.
type options struct {
	rounds  int
	binary  string
	side    string
	noBound bool
}

func main() {
	hosts.MaybeInit()
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 5, "how many times each side is measured, after one time that does not count")
	flag.StringVar(&o.binary, "binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	flag.StringVar(&o.side, "only", "", "script or holdfast: measure one side alone, without a ratio")
	flag.BoolVar(&o.noBound, "no-bound", false, "end well whatever the ratio is")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "gluster:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if err := pair.CheckSide(o.side); err != nil {
		return err
	}
	binary, err := pair.Program(o.binary, o.side != pair.Script)
	if err != nil {
		return err
	}
	var times pair.Times
	if err := hosts.Script(os.Stderr, func(t hosts.T) { times = measure(t, o, binary) }); err != nil {
		return err
	}
	fmt.Printf("\nFrom nothing to a volume of %d copies that is mounted and written to (s)\n\n", count)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	times.Print(w, bound)
	if err := w.Flush(); err != nil || o.noBound {
		return err
	}
	return times.Judge(bound)
}
