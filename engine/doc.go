// Package engine decides what happens to storage clusters. It does no I/O of its own, and knows
// neither etcd, nor a Kubernetes client, nor any storage system.
//
// How the parts fit:
//
//   - Run is the scheduler: it decides when a cluster is orchestrated (a change, the interval, a
//     retry) and calls the ServiceManager of the cluster's storage system.
//   - Orchestrator is that ServiceManager. One run takes the cluster's lock, reads a View from the
//     Store, has the Driver observe the storage system, and has it make a Plan.
//   - A Plan is a pure function of a View: Daemons, Secrets, removals, Commands, statuses and
//     Decisions. A plan that places daemons is made once more while its hosts are locked.
//   - The run compares the View with that of the last run (diff*.go), which gives the events; fold
//     and flap bound their number; Told is the record of what was emitted, in the Store.
//   - The run applies the plan (apply.go, perform.go) and writes the report (report.go).
//   - Project and Suppose answer "what would come of it" with the same planner, and write nothing.
//
// Contracts: Driver (suite: package conformance), Store (suite: package storetest). Package hosts
// carries out actions on hosts; package sim is a simulated world for scenarios.
package engine
