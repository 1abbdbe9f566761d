package hosts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// address is an address in the lab's network.
func address(subnet, last int) string { return fmt.Sprintf("10.77.%d.%d", subnet, last) }

// hardwareAddress is made of the IP address, so that a host keeps it over a power-off and the others' ARP caches stay true.
func hardwareAddress(ip string) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x00}, net.ParseIP(ip).To4()...)
}

// freeSubnet returns an x for which nothing on the machine has an address in 10.77.x.0/24.
func freeSubnet() (int, error) {
	addresses, err := dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return 0, fmt.Errorf("while listing the machine's addresses: %w", err)
	}
	taken := map[byte]bool{}
	for _, a := range addresses {
		if ip := a.IP.To4(); ip != nil && ip[0] == 10 && ip[1] == 77 {
			taken[ip[2]] = true
		}
	}
	for _, x := range rand.Perm(254) {
		if !taken[byte(x)] {
			return x, nil
		}
	}
	return 0, errors.New("no subnet 10.77.x.0/24 is free")
}

// dump asks the kernel for a list again whenever the list changed while it was read, as other labs come and go.
func dump[E any](list func() ([]E, error)) (all []E, err error) {
	for range 100 {
		all, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func makeBridge(s state) error {
	// The address is set, or the bridge would take that of a port and change it whenever a host's power goes.
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: s.Prefix, HardwareAddr: hardwareAddress(address(s.Subnet, 1))}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("while making the bridge %s: %w", s.Prefix, err)
	}
	addr, err := netlink.ParseAddr(address(s.Subnet, 1) + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return fmt.Errorf("while giving the bridge %s its address: %w", s.Prefix, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("while starting the bridge %s: %w", s.Prefix, err)
	}
	return nil
}

// plug connects the host, whose first process is given, to the bridge.
func (h *Host) plug(pid int) error {
	bridge, err := netlink.LinkByName(h.lab.state.Prefix)
	if err != nil {
		return fmt.Errorf("while finding the bridge: %w", err)
	}
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: h.link(), MasterIndex: bridge.Attrs().Index},
		PeerName:         "eth0",
		PeerNamespace:    netlink.NsPid(pid),
		PeerHardwareAddr: hardwareAddress(h.IP),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("while making the link of host %s: %w", h.Name, err)
	}
	if h.cut {
		return nil
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("while starting the link of host %s: %w", h.Name, err)
	}
	return nil
}

// unplug removes the host's link. The kernel would do so some time after the host's last process.
func (h *Host) unplug() error { return removeLink(h.link()) }

// removeLink removes a link; one that is gone, or that the kernel removes at the same moment with its namespace, is no error.
func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("while removing the link %s: %w", name, err)
	}
	return nil
}

// links lists the interfaces of the machine whose names start with the lab's prefix.
func links(prefix string) ([]string, error) {
	all, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("while listing the machine's links: %w", err)
	}
	var out []string
	for _, l := range all {
		if strings.HasPrefix(l.Attrs().Name, prefix) {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
}

func (h *Host) setLink(up bool) error {
	link, err := netlink.LinkByName(h.link())
	if err != nil {
		return fmt.Errorf("while finding the link of host %s: %w", h.Name, err)
	}
	set := netlink.LinkSetDown
	if up {
		set = netlink.LinkSetUp
	}
	if err := set(link); err != nil {
		return fmt.Errorf("while switching the link of host %s: %w", h.Name, err)
	}
	return nil
}

// Partition keeps the hosts of two sides from reaching each other: what one sends the other never arrives, and nobody is told.
// Within a side nothing changes. It returns a function that undoes it. A host that is powered off meanwhile comes back whole.
func (l *Lab) Partition(t T, one, other []*Host) (heal func()) {
	t.Helper()
	l.routes(t, "add", one, other)
	return func() { l.routes(t, "del", one, other) }
}

// routes adds or removes routes that lead nowhere, on all hosts of two sides to all of the other.
func (l *Lab) routes(t T, verb string, one, other []*Host) {
	t.Helper()
	for _, a := range one {
		for _, b := range other {
			a.Run(t, context.Background(), "ip", "route", verb, "blackhole", b.IP+"/32")
			b.Run(t, context.Background(), "ip", "route", verb, "blackhole", a.IP+"/32")
		}
	}
}
