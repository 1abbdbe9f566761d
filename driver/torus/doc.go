// Package torus is the engine's driver for Torus. It talks to no network: the agents of the nodes report what torusctl says
// (Daemon.status.report, package internal/torus), and carry out the commands that the driver plans (engine.Command.Daemon).
//
// How a cluster comes up: the etcd, where none is given; one torusd, the founder, whose agent writes the first metadata; the others,
// once the founder reports; and then those that are heard become members of the ring, as many at once as there are.
// One torusd, the speaker, reports on the whole cluster and is given the commands.
package torus
