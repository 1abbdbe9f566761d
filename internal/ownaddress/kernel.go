package ownaddress

import (
	"context"
	"net"
	"net/netip"
)

// kernelSource asks the kernel's routes; connecting a UDP socket sends nothing.
func kernelSource(ctx context.Context, target string) string {
	host, _, err := net.SplitHostPort(target)
	if err != nil || net.ParseIP(host) == nil {
		return "" // a name would have to be looked up, which may take long
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", target)
	if err != nil {
		return ""
	}
	defer conn.Close()
	ip, ok := netip.AddrFromSlice(conn.LocalAddr().(*net.UDPAddr).IP)
	if !ok || !ip.Unmap().IsGlobalUnicast() {
		return ""
	}
	return ip.Unmap().String()
}

// kernelLinks are the interfaces of the own network namespace.
func kernelLinks() []Link {
	interfaces, _ := net.Interfaces()
	var all []Link
	for _, i := range interfaces {
		l := Link{Name: i.Name, Running: i.Flags&net.FlagRunning != 0}
		addresses, _ := i.Addrs() // none where the interface has gone meanwhile
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				l.Addresses = append(l.Addresses, prefix.Addr().Unmap())
			}
		}
		all = append(all, l)
	}
	return all
}
