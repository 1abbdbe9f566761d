package agent

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
)

// preferredAddress is the address that others reach the host by best: the configured one, else the one that leads to
// the server, else that of the default route. It is empty when there is none.
func (a *agent) preferredAddress(ctx context.Context) string {
	if a.Address != "" {
		return a.Address
	}
	targets := []string{"192.0.2.1:9", "[2001:db8::1]:9"}
	if a.REST != nil {
		if u, err := url.Parse(a.REST.Host); err == nil && u.Host != "" {
			targets = append([]string{u.Host}, targets...)
		}
	}
	for _, target := range targets {
		if ip := sourceAddress(ctx, target); ip != "" {
			return ip
		}
	}
	return ""
}

// ownAddress is preferredAddress, or else any of the host's, as on a network without a default route.
func (a *agent) ownAddress(ctx context.Context) string {
	if ip := a.preferredAddress(ctx); ip != "" {
		return ip
	}
	if all := addresses(""); len(all) > 0 {
		return all[0]
	}
	return ""
}

// sourceAddress asks the kernel's routes; connecting a UDP socket sends nothing.
func sourceAddress(ctx context.Context, target string) string {
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

// addresses lists the host's unicast addresses, in order, after the preferred one.
func addresses(preferred string) []string {
	const limit = 64 // the bound of Host.status.addresses
	all, _ := net.InterfaceAddrs()
	var ips []netip.Addr
	for _, addr := range all {
		if prefix, err := netip.ParsePrefix(addr.String()); err == nil && prefix.Addr().Unmap().IsGlobalUnicast() {
			ips = append(ips, prefix.Addr().Unmap())
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	out := []string{}
	if preferred != "" {
		out = append(out, preferred)
	}
	for _, ip := range slices.Compact(ips) {
		if s := ip.String(); s != preferred && len(out) < limit {
			out = append(out, s)
		}
	}
	return out
}
