// Package doors bounds the connections that a server keeps open: their number, of each client and
// in all, and how long one may take to say who it is. What is left of the process's descriptors
// belongs to etcd, the leader, and the servers themselves.
package doors

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds are how many connections are open at once. A stranger is who has not proven who he is:
// everybody at first, and those who join to the end.
type Bounds struct {
	// Strangers are connections of strangers from other machines. As many may come from this one.
	Strangers int
	// PerAddress are those from one address, or from one /64 of IPv6, which one machine may have
	// for itself.
	PerAddress int
	// Clients are connections of clients with a certificate that is believed. The servers' own are
	// not counted.
	Clients int
	// PerClient are those of one client, by the name in his certificate.
	PerClient int
}

const (
	// mostConnections bounds the memory that connections take, some 50 KB each with TLS and HTTP/2:
	// a thousand agents have two or three each.
	mostConnections = 8192
	// fewestOfOne is what one client can work with, however few descriptors there are.
	fewestOfOne = 16
)

// ForDescriptors derives the bounds from how many descriptors the process may have open. Half of
// them are for connections, and of these an eighth for strangers; the other half is kept for etcd,
// the leader, and the servers among themselves.
func ForDescriptors(limit uint64) Bounds {
	all := int(min(limit/2, mostConnections))
	strangers := all / 8
	clients := all - 2*strangers // this machine may have as many strangers as all others
	return Bounds{
		Strangers: strangers, PerAddress: max(strangers/4, fewestOfOne),
		Clients: clients, PerClient: max(clients/16, fewestOfOne),
	}
}

// ForMembers derives the bounds of the port for etcd's members, of whom there are few: all who have
// no certificate are strangers.
func ForMembers(limit uint64) Bounds {
	strangers := int(min(limit/32, mostConnections/32))
	return Bounds{Strangers: strangers, PerAddress: max(strangers/4, fewestOfOne)}
}

// Total is how many connections there are at most, without the servers' own.
func (b Bounds) Total() int { return 2*b.Strangers + b.Clients }

// Descriptors is how many descriptors this process may have open. The Go runtime has raised the
// soft limit to the hard one.
func Descriptors() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("while asking how many files may be open: %w", err)
	}
	return limit.Cur, nil
}

// How long a stranger is waited for.
const (
	// headerTime is how long the first request may be in coming, the TLS handshake included.
	headerTime = 10 * time.Second
	// strangerTime is how long a connection lasts whose client never proves who he is. To join
	// takes less.
	strangerTime = time.Minute
	// mostFailures are the requests of one connection that are refused for want of a credential
	// before it is closed.
	mostFailures = 32
)
