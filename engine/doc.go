// Package engine decides what happens to storage clusters. An orchestration makes a view, finds what differs from the
// view before (events), asks the driver for a plan (a pure function), carries the plan out through the Store, and leaves a
// report. The package does no I/O of its own and knows neither etcd, nor a Kubernetes client, nor any storage system.
package engine
