// Package control is the control plane on bare machines: each server may run a member of etcd and the
// API server, and gives certificates to hosts and servers that join.
//
// How the parts fit:
//
//   - Server (server.go) starts and joins (startup.go, present.go), serves and stops. A server
//     without a member of etcd is a standby (ask.go): it waits, copies backups (backups.go), and becomes a
//     member when one is wanted (seat.go: a seat is the membership of etcd).
//   - A seat that is held runs the member of etcd, the API, and what works beside them (heldseat.go,
//     seatapi.go). It answers servers that ask for a seat (answer.go).
//   - Package members runs beside each member, and acts where its member leads etcd: it observes the
//     members, asks driver/etcd for the next step, takes it, and writes the events QUORUM_*.
//   - Each server is a host, too, with an agent and its own identity (ownhost.go).
//   - Restore (restore.go, exchange.go, overthrow.go, newcomer.go, rejoin.go) makes a new control plane
//     from a backup or from the data of one server, and lets others join it.
//   - Identity (certificates.go, trust.go, identity.go, leading.go, follow.go, people.go) keeps
//     certificates fresh, and follows a rotation of the authority.
//
// Rooms below: etcd (one member, and the fence of writes), members (which servers hold one),
// apiserver (the Kubernetes API machinery), access (who may do what), pki, join, endpoints (clients
// with fail-over), doors (bounds of connections), leader (election), backup, rotation (the Action
// that replaces the authority).
package control
