// Package gluster is the engine's driver for GlusterFS. It talks to no network: the agents of the nodes report what their
// glusterd says (Daemon.status.report, package internal/glusterd), and carry out the commands that the driver plans
// (engine.Command.Daemon).
//
// One glusterd, the speaker, reports on the whole pool and is given the commands; the others report on themselves. How a cluster
// comes up: each StorageNode gets a glusterd, the speaker takes the others into its pool, and volumes are made when the nodes that
// they need are there. A brick that is to leave its place is replaced one at a time, and only while all else of its volume is
// online and healed.
package gluster
