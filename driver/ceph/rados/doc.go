// Package rados sends commands to the monitors and managers of Ceph clusters. It is the only way in which Holdfast talks to
// Ceph.
//
// librados is loaded at run time (no cgo), and never into the server itself: the binary runs itself a second time, one such
// child for each cluster, and speaks to it over a pair of pipes. A librados that crashes or hangs costs a child, which is
// started again. The child ends with its parent.
//
// A program that dials a cluster calls MaybeServe first thing in main, and a test in TestMain.
package rados
