// Package ownaddress finds by which of its addresses other machines reach this one best.
package ownaddress

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Machine is what is asked. The zero value is the machine itself.
type Machine struct {
	// Root is before /sys.
	Root string
	// Source is the address from which the kernel sends to a target (IP:port); empty where no route
	// leads there.
	Source func(ctx context.Context, target string) string
	// Links are the machine's network interfaces.
	Links func() []Link
}

// Link is a network interface.
type Link struct {
	Name      string
	Running   bool
	Addresses []netip.Addr
}

// defaultRoutes are targets that only a default route leads to: addresses for documentation.
var defaultRoutes = []string{"192.0.2.1:9", "[2001:db8::1]:9"}

// Best is the address that others reach the machine by best: its own among those of the servers
// (IP:port), else the one from which it reaches them, else that of the default route. It is empty
// where there is none of these.
func (m Machine) Best(ctx context.Context, servers []string) string {
	source := m.Source
	if source == nil {
		source = kernelSource
	}
	best := ""
	for _, server := range servers {
		ip := source(ctx, server)
		if host, _, err := net.SplitHostPort(server); err == nil && ip != "" && same(ip, host) {
			return ip
		}
		best = cmp.Or(best, ip)
	}
	for _, target := range defaultRoutes {
		if best == "" {
			best = source(ctx, target)
		}
	}
	return best
}

// Kept is the first of the addresses that the machine had before, if it still has that one on a link
// that leads to other machines; else it is empty.
func (m Machine) Kept(before []string) string {
	outer, _ := m.unicast()
	if len(before) > 0 && slices.ContainsFunc(outer, func(ip netip.Addr) bool { return ip.String() == before[0] }) {
		return before[0]
	}
	return ""
}

// All are the machine's unicast addresses, first the given one, and last those of links that lead
// to no other machine: links that are down, and bridges of containers and virtual machines.
func (m Machine) All(first string) []string {
	outer, inner := m.unicast()
	var all []string
	if first != "" {
		all = append(all, first)
	}
	for _, ip := range slices.Concat(outer, inner) {
		if !slices.Contains(all, ip.String()) {
			all = append(all, ip.String())
		}
	}
	return all
}

// unicast are the machine's unicast addresses, each list sorted: those of links that lead to other
// machines, and the rest.
func (m Machine) unicast() (outer, inner []netip.Addr) {
	list := m.Links
	if list == nil {
		list = kernelLinks
	}
	for _, l := range list() {
		if !l.Running || m.isInner(l.Name) {
			inner = append(inner, unicast(l.Addresses)...)
		} else {
			outer = append(outer, unicast(l.Addresses)...)
		}
	}
	slices.SortFunc(outer, netip.Addr.Compare)
	slices.SortFunc(inner, netip.Addr.Compare)
	return outer, inner
}

// Any is the best address, or else the first of all. It is empty where the machine has none.
func (m Machine) Any(ctx context.Context, servers []string) string {
	if ip := m.Best(ctx, servers); ip != "" {
		return ip
	}
	if all := m.All(""); len(all) > 0 {
		return all[0]
	}
	return ""
}

// isInner says whether a link is a bridge without a port that leads out: one of hardware, of a bond
// or of a VLAN.
func (m Machine) isInner(link string) bool {
	ports, err := os.ReadDir(filepath.Join(m.Root, "/sys/class/net", link, "brif"))
	return err == nil && !slices.ContainsFunc(ports, func(port os.DirEntry) bool {
		return m.has(port.Name(), "device") || m.has(port.Name(), "bonding") || m.leads(port.Name())
	})
}

func (m Machine) has(link, attribute string) bool {
	_, err := os.Stat(filepath.Join(m.Root, "/sys/class/net", link, attribute))
	return err == nil
}

// leads says whether a link lies above another one of this machine, as a VLAN does. The other end
// of a container's link lies elsewhere.
func (m Machine) leads(link string) bool {
	lower, _ := filepath.Glob(filepath.Join(m.Root, "/sys/class/net", link, "lower_*"))
	return len(lower) > 0
}

func unicast(all []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(all), func(ip netip.Addr) bool { return !ip.IsGlobalUnicast() })
}

func same(ip, other string) bool {
	a, errA := netip.ParseAddr(ip)
	b, errB := netip.ParseAddr(other)
	return errA == nil && errB == nil && a.Unmap() == b.Unmap()
}
