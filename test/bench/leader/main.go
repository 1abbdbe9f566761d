// Command leader measures on three real servers that meet on loopback how long it takes after kill -9 of the leader until the next one
// writes under its own term. It needs no root.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// options are the command line.
type options struct {
	kills   int
	binary  string
	json    bool
	noBound bool
}

func main() {
	o := options{}
	flag.IntVar(&o.kills, "kills", 20, "how many leaders are killed")
	flag.StringVar(&o.binary, "binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.noBound, "no-bound", false, "end well also where a bound is not kept")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	binary, err := pair.Program(o.binary, true)
	if err != nil {
		return err
	}
	r := &result{}
	if err := hosts.Script(os.Stderr, func(t hosts.T) { r.measure(t, o, binary) }); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(os.Stdout)
	}
	if o.noBound {
		return err
	}
	return errors.Join(err, r.judge())
}
