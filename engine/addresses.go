package engine

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Addresses tells which addresses of hosts the leader goes by. A host reports its addresses itself, and a report may be wrong: an
// address that two hosts report (a virtual address that moves, a bridge that each host has, a host that lies) belongs to the
// one with a daemon that was given it. If there is none, it belongs to the one that is heard, and to none if several are. What is no
// unicast address belongs to nobody.
type Addresses struct {
	hosts  map[netip.Addr][]string
	given  map[netip.Addr]string
	silent map[string]bool
}

// NewAddresses reads the hosts and daemons of a view. It is pure, and so is what it returns.
func NewAddresses(v *View) *Addresses {
	x := &Addresses{hosts: map[netip.Addr][]string{}, given: map[netip.Addr]string{}, silent: map[string]bool{}}
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if !h.AgentHeard() {
			x.silent[h.Name] = true
		}
		for _, ip := range unicast(h) {
			if names := x.hosts[ip]; len(names) == 0 || names[len(names)-1] != h.Name {
				x.hosts[ip] = append(names, h.Name)
			}
		}
	}
	for i := range v.Daemons {
		x.give(&v.Daemons[i])
	}
	for _, d := range v.Others {
		x.give(d)
	}
	return x
}

// ownAddress are the parameters in which drivers write a daemon's own address: as it is, or as a URL (Torus).
var ownAddress = []string{"address", "peer"}

// give notes the address that a daemon was given. The leader wrote it when it placed the daemon.
func (x *Addresses) give(d *api.Daemon) {
	for _, name := range ownAddress {
		value := d.Spec.Parameters[name]
		if u, err := url.Parse(value); err == nil && u.Host != "" {
			value = u.Hostname()
		}
		if ip, err := netip.ParseAddr(value); err == nil && x.given[ip.Unmap()] == "" {
			x.given[ip.Unmap()] = d.Spec.Host
		}
	}
}

// unicast are the addresses in a host's report that a host can have.
func unicast(h *api.Host) []netip.Addr {
	var ips []netip.Addr
	for _, a := range h.Status.Addresses {
		ip, err := netip.ParseAddr(a)
		if err == nil && ip.Zone() == "" && !ip.IsMulticast() && !ip.IsUnspecified() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// Of are the addresses of a host that belong to it, in the order of its report.
func (x *Addresses) Of(h *api.Host) []string {
	var own []string
	for _, ip := range unicast(h) {
		if x.belongs(ip, h.Name) {
			own = append(own, ip.String())
		}
	}
	return own
}

func (x *Addresses) belongs(ip netip.Addr, host string) bool {
	if owner := x.given[ip]; owner != "" && slices.Contains(x.hosts[ip], owner) {
		return owner == host
	}
	return !slices.ContainsFunc(x.hosts[ip], func(other string) bool { return other != host && !x.silent[other] })
}

// Why says of a host without an address of its own why it has none, and what to do.
func (x *Addresses) Why(h *api.Host) string {
	var shared []string
	for _, ip := range unicast(h) {
		for _, other := range x.hosts[ip] {
			if other != h.Name {
				shared = append(shared, fmt.Sprintf("%s (%s)", ip, other))
				break
			}
		}
	}
	if len(shared) == 0 {
		return fmt.Sprintf("host %s reports no unicast address", h.Name)
	}
	return fmt.Sprintf("host %s has no address of its own, because other hosts report the same: %s; name the address "+
		"in storageNetwork.ips of the StorageNode, or remove it from one of the hosts (if that machine is gone: "+
		"'holdfast host remove NAME --gone')", h.Name, strings.Join(shared, ", "))
}
