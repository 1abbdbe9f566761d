// Package ceph is the engine's driver for Ceph: it observes a Ceph cluster, plans its daemons, and
// asks Ceph for what only Ceph can do. All calls to Ceph go through package rados.
//
// How the parts fit:
//
//   - Driver (driver.go) implements engine.Driver. Observe (observe.go, *facts.go) asks the mons and
//     the mgr, and returns an Observation.
//   - Plan (plan.go) runs the phases of one planner, in the order of planAll: options, nodes and
//     OSDs, modes of hosts, restarts and flapping, placing of mons and services, CRUSH, resources, and
//     at the end the writing of the plan. Later phases read what earlier ones set: the order counts.
//   - Resources have a file group each: pool*, fs* and filesystem, store*, client*, nfs, mirror*.
//   - Commands (verbs.go and *verbs.go) are rows of one table: how a verb is performed, what it does
//     to an Observation (foresee.go), and its risk. So a shown plan and the real one cannot differ.
//   - Status (status.go, health*.go) makes the StorageStatus and the next step of each health check.
//   - Actions: adopt*.go and handover*.go take over a running cluster, recover*.go a lost quorum.
//   - Packages below are pure; the planner writes what they decide: drift, location, serves, orch.
//
// How a cluster comes up: one plan makes all keys, starts the mons and mgrs, and has the OSDs
// prepared; nothing waits for anything else on its host. The mons find the keys of all mgrs in the
// keyring that their stores are made from. When the mons answer, the OSDs are registered (osd new);
// when Ceph's map shows them, they are started. Each step can be cut off; the next run continues.
package ceph
