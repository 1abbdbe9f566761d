// Command bench measures how long Holdfast takes from nothing to a healthy Ceph cluster, as a ratio to the shortest
// hand-written script (bringup.sh) that brings up the same cluster on the same hosts, in alternation, in one run. It tells
// where the time goes, and can tell what idle servers cost.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// The cluster that both sides bring up: a mon and an OSD on each of three hosts, mgrs on two.
const (
	mons = 3
	mgrs = 2
	osds = 3
)

// bound is the highest ratio Holdfast / script that passes.
const bound = 1.3

// options are the command line.
type options struct {
	rounds  int
	idle    time.Duration
	binary  string
	side    string
	json    bool
	noBound bool
}

func main() {
	hosts.MaybeInit()
	rados.MaybeServe()
	if len(os.Args) > 2 && os.Args[1] == commandsArgument {
		exit(sendCommands(context.Background(), os.Args[2], os.Args[3:]))
	}
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 5, "how many times each side is measured, after one time that does not count")
	flag.DurationVar(&o.idle, "idle", 0, "how long to watch the servers when the cluster is healthy and nothing happens, such as 30s")
	flag.StringVar(&o.binary, "binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	flag.StringVar(&o.side, "only", "", "script or holdfast: measure one side alone, without a ratio")
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.noBound, "no-bound", false, "end well whatever the ratio is")
	flag.Parse()
	exit(run(o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(o options) error {
	if err := pair.CheckSide(o.side); err != nil {
		return err
	}
	binary, err := pair.Program(o.binary, o.side != pair.Script)
	if err != nil {
		return err
	}
	var result *result
	if err := hosts.Script(os.Stderr, func(t hosts.T) { result = measure(t, o, binary) }); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(result)
	} else {
		err = result.print(os.Stdout)
	}
	if !o.noBound {
		err = errors.Join(err, result.times().Judge(bound))
	}
	return err
}
