package v1alpha1

import "strings"

const (
	// SystemNamespace is where Leases, the records of the leader and what belongs to no cluster lie.
	SystemNamespace = "holdfast-system"
	// LeaderLease is the name of the Lease in SystemNamespace that those contend for who may lead. The
	// fence of the leader has the same name.
	LeaderLease = "leader"
)

// HostLease is the name of the Lease in SystemNamespace by which the agent of a host shows that it
// is alive.
func HostLease(host string) string { return hostLease + host }

const hostLease = "host-"

// HostOfLease is the host that a Lease in SystemNamespace is of.
func HostOfLease(name string) (host string, ok bool) { return strings.CutPrefix(name, hostLease) }
