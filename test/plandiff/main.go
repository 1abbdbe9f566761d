// Command plandiff compares the plans that the tests of two commits made (package plandump), test by
// test. It exits with 1 when they differ.
//
//	plandiff [-without KEY,KEY] [-memory-in-spec] OLD NEW
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

func main() {
	without := flag.String("without", "", "keys of the JSON that are not compared, joined by commas")
	memory := flag.Bool("memory-in-spec", false, "the leader's memory of a Daemon is compared with parameters of its spec")
	shown := flag.Int("show", 3, "how many differing tests are shown")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: plandiff [-without KEY,KEY] [-memory-in-spec] OLD NEW")
		os.Exit(2)
	}
	form := form{without: strings.Split(*without, ","), memoryInSpec: *memory}
	same, err := compare(os.Stdout, flag.Arg(0), flag.Arg(1), form, *shown)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plandiff:", err)
		os.Exit(2)
	}
	if !same {
		os.Exit(1)
	}
}

// form is the form in which plans are compared.
type form struct {
	// without are keys of the JSON that are left out.
	without []string
	// memoryInSpec has the leader's memory stand in the spec.
	memoryInSpec bool
}

// compare says whether two directories have the same plans, and writes what differs.
func compare(out io.Writer, before, after string, in form, shown int) (bool, error) {
	old, err := read(before, in)
	if err != nil {
		return false, err
	}
	now, err := read(after, in)
	if err != nil {
		return false, err
	}
	if len(old) == 0 {
		return false, errors.New("there are no plans to compare with")
	}
	var equal, differ, plans int
	var alone []string
	for _, test := range names(old, now) {
		switch a, b := old[test], now[test]; {
		case a == nil || b == nil:
			alone = append(alone, test)
		case slices.Equal(a, b):
			equal++
			plans += len(a)
		default:
			if differ++; differ <= shown {
				fmt.Fprintf(out, "%s: %d plans, now %d (-old +new):\n%s\n", test, len(a), len(b), difference(a, b))
			}
		}
	}
	fmt.Fprintf(out, "%d tests made the same %d plans; %d tests made other plans; %d tests are in one commit only\n",
		equal, plans, differ, len(alone))
	for _, test := range alone {
		fmt.Fprintln(out, "  in one commit only:", test)
	}
	return differ == 0, nil
}

func names(of ...map[string][]string) []string {
	all := map[string]bool{}
	for _, m := range of {
		for name := range m {
			all[name] = true
		}
	}
	sorted := make([]string, 0, len(all))
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// read returns the plans below a directory by their tests, sorted: parallel parts of a test write in
// no order.
func read(dir string, in form) (map[string][]string, error) {
	all := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		test, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			plan, err := in.bare(line)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			all[test] = append(all[test], plan)
		}
		slices.Sort(all[test])
		return nil
	})
	return all, err
}

// bare is a plan in the form.
func (f form) bare(line []byte) (string, error) {
	var plan any
	if err := json.Unmarshal(line, &plan); err != nil {
		return "", err
	}
	drop(plan, f.without)
	if f.memoryInSpec {
		plan = memoryInSpec(plan)
	}
	text, err := json.MarshalIndent(plan, "", " ")
	return string(text), err
}

func drop(value any, keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range keys {
			delete(v, key)
		}
		for _, inner := range v {
			drop(inner, keys)
		}
	case []any:
		for _, inner := range v {
			drop(inner, keys)
		}
	}
}

// difference shows the first plan of each side that the other does not have.
func difference(a, b []string) string {
	first := func(of, other []string) string {
		have := map[string]int{}
		for _, plan := range other {
			have[plan]++
		}
		for _, plan := range of {
			if have[plan]--; have[plan] < 0 {
				return plan
			}
		}
		return ""
	}
	return cmp.Diff(strings.Split(first(a, b), "\n"), strings.Split(first(b, a), "\n"))
}
