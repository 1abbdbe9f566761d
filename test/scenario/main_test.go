// Package scenario holds the tests of the engine together with the driver for Ceph, on a simulated world: hosts, agents and a
// Ceph in memory, in virtual time. The scheduler, the orchestrator and the driver are the real ones. What the simulation
// takes for granted of Ceph is recorded from a real one, and test/e2e runs the same things on it.
package scenario

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A story is long, and 'go test -rapid.checks=1000' tells as many of them as one likes.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
