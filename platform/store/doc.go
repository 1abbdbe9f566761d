// Package store joins the engine to the API: it makes views from the objects there, and writes
// plans to it. The agents carry out what the Daemons say. The Store, and the watch over the agents'
// heartbeats, are the leader's alone. It serves both homes: Holdfast's own API servers
// (platform/bare) and those of Kubernetes (platform/kube).
//
// # Locks and fencing
//
// A cluster's lock is the Lease orchestrate-<namespace>.<name> in holdfast-system. Only the leader
// takes locks, and it may take them at once: a lock's holder that does not lead any more can write
// nothing. Each time the lock's term, leaseTransitions, is counted up. A lock needs no renewal, so
// a run of which nothing comes costs no write. The Store watches the Leases; a lock whose holder or
// term changed, or that was deleted, ends the context of the run that had it.
//
// All writes of the Store carry the leader's token, and those under a lock the lock's token, too
// (package fence). etcd compares the tokens in the transaction that writes, so a leader that is
// paused anywhere, also between the API server's last look and etcd, and wakes up after another
// took over, writes nothing. How a token travels is the home's affair (Options.Fence); in
// Kubernetes a policy compares it.
package store
