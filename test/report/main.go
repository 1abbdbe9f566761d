// Report reads what 'go test -json' wrote in a run, and prints how many tests of the tier ran, the slowest
// ones, those that failed once and passed when they ran again alone (FLAKY), and those that failed (FAILED).
//
//	go run ./test/report -tier core FILE...
//
// It fails when a test of the tier did not take part, or when one was skipped that is no test of a larger tier.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	tier := flag.String("tier", "", "the tier that ran: core or full; empty means that only some tests were asked for")
	slowest := flag.Int("slowest", 20, "how many of the slowest tests are printed")
	flag.Parse()
	if *tier != "" && *tier != "core" && *tier != "full" {
		fmt.Fprintf(os.Stderr, "report: there is no tier %q: it is core or full\n", *tier)
		os.Exit(2)
	}
	if err := run(*tier, *slowest, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(tier string, slowest int, files []string) error {
	results, err := readAll(files)
	if err != nil {
		return err
	}
	results.printSlowest(os.Stdout, slowest)
	err = results.check(os.Stdout, tier)
	results.printFailures(os.Stdout)
	return err
}
