// Package torus holds what the driver for Torus and the agents of its nodes must agree on: the Daemons' types and parameters, the
// commands, what a node reports, and how the output of torusctl reads (v0.1.2). It does no I/O.
package torus
