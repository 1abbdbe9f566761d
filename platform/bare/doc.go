// Package bare joins the engine to the API of the bare home: it makes views from the objects there, and writes plans to it.
// The agents carry out what the Daemons say. The Store, and the watch over the agents' heartbeats, are the leader's alone.
//
// # Locks and fencing
//
// A cluster's lock is the Lease orchestrate-<namespace>-<name> in holdfast-system. Only the leader takes locks, so a lock
// is worth as much as its holder's leadership: it is refused while another server both holds it and holds the leader's
// Lease, and otherwise it is taken at once, with leaseTransitions, the lock's term, counted up. It needs no renewal, so a
// run of which nothing comes costs no write. The Store watches the Leases; a lock whose holder or term changed ends the
// context of the run that had it.
//
// What is left is a leader that is paused between looking and writing, and wakes up after another took over. The terms are
// there to close that gap: a write that names its term can be refused by the API server itself when the lock has a later
// one.
package bare
