// Package conformance is the suite that every engine.Driver passes. It runs a driver in a world of its own making, of declared objects
// and agents that do as they are told, and checks what the engine relies on: that plans are pure, that they lead to the end that is
// declared and then stop, that whatever is cut off is taken up again, and that nothing is destroyed for want of knowledge.
package conformance

import (
	"context"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Subject is a driver to be tested.
type Subject struct {
	// New makes a storage system of which nothing runs. Each check has its own.
	New func(t T) System
	// Cluster comes ONLINE with Nodes on Hosts, and can do without any one of the hosts: for a while, and for good, with room on the
	// others for what it has. Resources are optional.
	Cluster   api.StorageCluster
	Hosts     []api.Host
	Nodes     []api.StorageNode
	Resources []api.Resource
	// Anchored are hosts that are refused to be drained, for something on them that the storage system never moves.
	Anchored []string
	// Refusals are faults that people make in a cluster that is ONLINE. At least one is needed.
	Refusals []Refusal
	// Rounds bounds how many orchestrations a change may take. Zero: 60.
	Rounds int
}

// Refusal is something that is declared and that the driver has to refuse.
type Refusal struct {
	Name    string
	Declare func(w *World)
}

// System is a storage system in memory, with the part of the agents that knows of it.
type System interface {
	// Driver returns a driver of this system, as a new leader has it.
	Driver() engine.Driver
	// Act has the agents that are heard bring their daemons to where they are wanted, and take away those that are being deleted
	// (World.Agents does just that), and the system do what it does by itself. It may set what agents report of hosts and daemons.
	Act(w *World)
	// Ask has the agent of a daemon carry out a command that names it.
	Ask(w *World, d *api.Daemon, cmd engine.Command) error
}

// World is all that is declared and done. A System and a Refusal may change it.
type World struct {
	Now       time.Time
	Cluster   *api.StorageCluster
	Hosts     []api.Host
	Nodes     []api.StorageNode
	Resources []api.Resource
	// Daemons are by name.
	Daemons map[string]*api.Daemon

	secrets map[string]secret
	status  *api.StorageStatus
}

// T is what the suite needs of a *testing.T.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// check is one property. Its name stands in the documentation, docs/how-to/write-a-driver.md.
type check struct {
	name string
	run  func(*bench)
}

var checks = []check{
	{"waits without nodes", waitsWithoutNodes},
	{"comes up and stays", comesUp},
	{"is the same at any time", sameAtAnyTime},
	{"resumes after a crash", resumes},
	{"repeats are harmless", repeats},
	{"foresees what it does", foresees},
	{"heeds maintenance", heedsMaintenance},
	{"judges restarts", judgesRestarts},
	{"heeds drains", heedsDrains},
	{"tells silent agents nothing", heedsSilence},
	{"does no harm unknowing", harmless},
	{"knows its silence", knowsSilence},
	{"refuses with a reason", refuses},
	{"lets nodes go", letsNodesGo},
	{"plans alike in all modes", plansAlike},
	{"ends", ends},
	{"can be used at once", concurrent},
	{"heeds contexts", heedsContexts},
	{"knows its limits", knowsLimits},
	{"believes no lies", believesNoLies},
}

// Test runs the suite.
func Test(t *testing.T, s Subject) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(newBench(t, &s)) })
	}
}
