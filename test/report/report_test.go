package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run is a test run as 'go test -json' tells it: a package prefix is left out.
const someRun = `
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"    main_test.go:7: waited 20 s for room on the machine\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":25}
{"Action":"output","Package":"p","Test":"TestFlaky/one","Output":"    a_test.go:12: it is gone\n"}
{"Action":"output","Package":"p","Test":"TestFlaky/one","Output":"    a_test.go:5: ==== host h1 (10.77.0.11) is on\n"}
{"Action":"fail","Package":"p","Test":"TestFlaky/one","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestFlaky","Output":"    a_test.go:99: what comes after\n"}
{"Action":"fail","Package":"p","Test":"TestFlaky","Elapsed":2}
{"Action":"pass","Package":"p","Test":"TestFlaky","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestBad","Output":"panic: no\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":3}
{"Action":"fail","Package":"p","Elapsed":30}
not JSON: what a tool says
{"Action":"output","Package":"q","Test":"TestHangs","Output":"    q_test.go:3: waiting\n"}
{"Action":"fail","Package":"broken","Elapsed":0}
{"Action":"fail","Package":"s","Test":"TestOnce","Elapsed":1}
{"Action":"fail","Package":"s","Elapsed":1}
{"Action":"pass","Package":"s","Test":"TestOnce","Elapsed":1}
{"Action":"pass","Package":"s","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestLong","Output":"    a_test.go:5: takes part in 'make test-full' alone\n"}
{"Action":"skip","Package":"p","Test":"TestLong","Elapsed":0}
`

func readRun(t *testing.T) results {
	t.Helper()
	r := results{}
	if err := r.read(strings.NewReader(someRun)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPrintFailures(t *testing.T) {
	var out strings.Builder
	readRun(t).printFailures(&out)
	want := `FAILED broken : see above
FAILED p TestBad: panic: no
FLAKY p TestFlaky: a_test.go:12: it is gone
FAILED q TestHangs: it did not end: q_test.go:3: waiting
FLAKY s TestOnce: 
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintSlowest(t *testing.T) {
	var out strings.Builder
	readRun(t).printSlowest(&out, 2)
	want := "\nThe slowest tests, in seconds:\n     5.0  p TestGood\n     3.0  p TestBad\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCount(t *testing.T) {
	declared := []id{{"p", "TestGood"}, {"p", "TestLong"}, {"p", "TestForgotten"}}
	for tier, want := range map[string]string{
		"core": "1 tests are in no tier, or did not take part: p TestForgotten",
		"":     "",
	} {
		var out strings.Builder
		got := ""
		if err := readRun(t).count(&out, declared, tier); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("tier %q: %q, want %q", tier, got, want)
		}
		if want := "Of 3 tests 1 ran, 1 take part in 'make test-full' alone, 0 were skipped, 1 did not take part.\n" +
			"tests: 1 passed, 0 failed, 1 skipped\n"; !strings.Contains(out.String(), want) {
			t.Errorf("tier %q: %q is not in %q", tier, want, out.String())
		}
	}
	if err := readRun(t).count(&strings.Builder{}, declared[:2], "full"); err == nil {
		t.Error("a full run without a test of the full tier is no fault")
	}
	if err := readRun(t).count(&strings.Builder{}, declared[:2], "core"); err != nil {
		t.Error(err)
	}
}

// TestInSource finds this very test, and none of other modules.
func TestInSource(t *testing.T) {
	t.Chdir("../..")
	all, err := inSource()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, i := range all {
		found = found || i == id{module + "/test/report", "TestInSource"}
		if i.Test == "TestMain" || strings.HasPrefix(i.Package, module+"/test/kubectl") {
			t.Errorf("%s is no test of this module", i)
		}
	}
	if !found || len(all) < 1000 {
		t.Errorf("%d tests were found, with this one: %t", len(all), found)
	}
}
