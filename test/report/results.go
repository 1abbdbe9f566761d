package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxLine bounds a line of a file, in bytes: a test prints one line of output as one event.
const maxLine = 64 << 20

// id names a test: its package's import path and its function's name.
type id struct{ Package, Test string }

func (i id) String() string { return strings.TrimPrefix(i.Package, module+"/") + " " + i.Test }

// result is what became of a test. One that failed may have been run again.
type result struct {
	outcomes []string // pass, fail or skip, in order
	seconds  float64  // of the longest run
	waited   float64  // of the run under way, for room on the machine
	// saying is the last line that the test under way said of itself, failure that of the first run that failed.
	saying, failure string
	reason          string // why it was skipped
}

func (r *result) last() string {
	if len(r.outcomes) == 0 {
		return "unfinished"
	}
	return r.outcomes[len(r.outcomes)-1]
}

func (r *result) flaky() bool { return r.last() == "pass" && slices.Contains(r.outcomes, "fail") }

// results are those of the test functions of a run; what subtests say counts for their function. Test is
// empty for a package that failed outside its tests.
type results map[id]*result

// event is one line of 'go test -json' (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func readAll(files []string) (results, error) {
	all := results{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("while reading the results: %w", err)
		}
		err = all.read(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("while reading %s: %w", name, err)
		}
	}
	return all, nil
}

func (r results) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // what the tools print of themselves
		}
		r.add(e)
	}
	return lines.Err()
}

var (
	// says is a line of t.Error, t.Fatal or t.Log in a test file, crashes begins what the Go runtime says at its end.
	says = regexp.MustCompile(`^\s*\w+_test\.go:\d+: `)
	// pictures begins what a test that failed shows of each host (test/hosts Diagnose).
	pictures = regexp.MustCompile(`_test\.go:\d+: ====`)
	// waits is what a test says that waited for room on the machine (test/turn).
	waits   = regexp.MustCompile(`: waited (\d+) s for room on the machine`)
	crashes = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)`)
)

func (r results) add(e event) {
	function, _, sub := strings.Cut(e.Test, "/")
	key := id{e.Package, function}
	if r[key] == nil {
		r[key] = &result{}
	}
	one := r[key]
	switch e.Action {
	case "output":
		if found := waits.FindStringSubmatch(e.Output); found != nil {
			one.waited, _ = strconv.ParseFloat(found[1], 64)
		}
		if says.MatchString(e.Output) && !pictures.MatchString(e.Output) || crashes.MatchString(e.Output) {
			one.saying = strings.TrimSpace(e.Output)
		}
	case "fail":
		one.failure = cmp.Or(one.failure, one.saying)
		one.end(e, sub)
	case "skip":
		one.reason = one.saying
		one.end(e, sub)
	case "pass":
		one.end(e, sub)
	}
}

func (r *result) end(e event, sub bool) {
	if sub {
		return
	}
	r.outcomes, r.seconds = append(r.outcomes, e.Action), max(r.seconds, e.Elapsed-r.waited)
	r.waited = 0
}

// sorted are the tests in the order of their names. Packages are left out.
func (r results) sorted() []id {
	return slices.SortedFunc(maps.Keys(r), func(a, b id) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	})
}

func (r results) printSlowest(out io.Writer, most int) {
	all := slices.DeleteFunc(r.sorted(), func(i id) bool { return i.Test == "" })
	slices.SortStableFunc(all, func(a, b id) int { return cmp.Compare(r[b].seconds, r[a].seconds) })
	fmt.Fprintf(out, "\nThe slowest tests, in seconds:\n")
	for _, i := range all[:min(most, len(all))] {
		fmt.Fprintf(out, "%8.1f  %s\n", r[i].seconds, i)
	}
}

// printFailures ends the report, so that what failed stands last.
func (r results) printFailures(out io.Writer) {
	for _, i := range r.sorted() {
		one := r[i]
		switch {
		case i.Test == "" && r.failedIn(i.Package): // its tests tell
		case one.flaky():
			fmt.Fprintf(out, "FLAKY %s: %s\n", i, one.failure)
		case one.last() == "fail":
			fmt.Fprintf(out, "FAILED %s: %s\n", i, cmp.Or(one.failure, "see above"))
		case one.last() == "unfinished" && i.Test != "":
			fmt.Fprintf(out, "FAILED %s: it did not end: %s\n", i, one.saying)
		}
	}
}

// failedIn says whether a test of the package failed.
func (r results) failedIn(pkg string) bool {
	for i, one := range r {
		if i.Package == pkg && i.Test != "" && slices.Contains(one.outcomes, "fail") {
			return true
		}
	}
	return false
}
