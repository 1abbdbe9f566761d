// Package ceph is the engine's driver for Ceph: it observes a Ceph cluster, plans its daemons, and asks it for what only
// Ceph itself can do. All calls to Ceph go through package rados.
//
// How a cluster comes up: one plan makes all keys, starts the monitors and managers, and has the OSDs prepared; nothing waits
// for anything else on its host. The monitors find the keys of all managers in the keyring that they are made from, so that
// no call is needed for them. When the monitors answer, the OSDs are registered (osd new), and when Ceph's own map shows
// them, they are started. Each step may be cut off anywhere and is taken up again from what is there.
package ceph
