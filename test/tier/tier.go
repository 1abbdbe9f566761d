// Package tier says in which run a test takes part.
//
//	make test       the core: 'go test -short'
//	make test-full  everything
//	make soak       some tests of the full run, for hours
//
// A unit test is part of the core unless it calls Full at its head. Each test of test/e2e stands in the list
// of that package (tiers_test.go). test/report counts the tests of each tier, and fails a run in which one of
// its tests did not take part.
package tier

import (
	"hash/fnv"
	"testing"
)

// Full marks a test that takes part in 'make test-full' alone: it finds little for the time that it takes.
func Full(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip(InFullOnly)
	}
}

// InFullOnly is what a test says that does not take part in 'make test'.
const InFullOnly = "takes part in 'make test-full' alone"

// Tries says whether a sweep tries its case number i: each one in 'make test-full', one of n in 'make test'.
// Sweeps of different tests meet different cases, the same ones in each run.
func Tries(t testing.TB, i, n int) bool {
	if !testing.Short() {
		return true
	}
	hash := fnv.New32a()
	hash.Write([]byte(t.Name()))
	return (i+int(hash.Sum32()%uint32(n)))%n == 0
}
