package facts

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Bounds of the lists of the API.
const (
	maxInterfaces = 32
	maxAddresses  = 16
)

// Link is a network interface as its network namespace has it. /proc and /sys do not tell the IPv4
// addresses of one.
type Link struct {
	Name      string
	MAC       string
	MTU       int
	Up        bool
	Addresses []netip.Prefix
}

// links are those of the own network namespace.
func links() ([]Link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []Link
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		l := Link{Name: i.Name, MAC: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagRunning != 0}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it is gone
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				l.Addresses = append(l.Addresses, p)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// interfaces are those of hardware and bonds of them, and those that are up and have an address
// that others can reach. Those of containers come and go with every container, and have none.
func (r Reader) interfaces() []api.HostInterface {
	list := r.Links
	if list == nil {
		list = links
	}
	all, err := list()
	if err != nil {
		return nil
	}
	var hardware, others []api.HostInterface
	for _, l := range all {
		is := r.facts(l)
		switch {
		case r.has(l.Name, "device") || r.has(l.Name, "bonding"):
			hardware = append(hardware, is)
		case l.Up && len(is.Addresses) > 0:
			others = append(others, is)
		}
	}
	byName := func(a, b api.HostInterface) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(hardware, byName)
	slices.SortFunc(others, byName)
	both := slices.Concat(hardware, others)
	return both[:min(len(both), maxInterfaces)]
}

func (r Reader) facts(l Link) api.HostInterface {
	//nolint:gosec // no MTU is so large
	is := api.HostInterface{Name: text(l.Name), MAC: text(l.MAC), MTU: int32(l.MTU), Up: l.Up}
	// An interface without a known speed has -1, or cannot be asked.
	is.Speed = max(0, r.number(filepath.Join("sys/class/net", l.Name, "speed")))
	slices.SortFunc(l.Addresses, comparePrefixes)
	for _, a := range slices.Compact(l.Addresses) {
		if a.Addr().IsGlobalUnicast() && len(is.Addresses) < maxAddresses {
			is.Addresses = append(is.Addresses, text(a.String()))
		}
	}
	return is
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

func (r Reader) has(name, attribute string) bool {
	_, err := os.Stat(filepath.Join(r.Root, "/sys/class/net", name, attribute))
	return err == nil
}
