package agent

import (
	"cmp"
	"context"
	"net/url"

	"github.com/holdfast-storage/holdfast/internal/ownaddress"
)

// ownAddress is the address that others reach the host by best: the configured one, else that of
// ownaddress.
func (a *agent) ownAddress(ctx context.Context) string {
	return cmp.Or(a.Address, ownaddress.Machine{}.Any(ctx, serversOf(&a.Config)))
}

// addresses lists the host's unicast addresses, the best one first. The first of those that were
// reported before stays: daemons listen on it, and on a host with several networks the best one
// changes with the routes.
func (a *agent) addresses(ctx context.Context, before []string) []string {
	const limit = 64 // the bound of Host.status.addresses
	m := ownaddress.Machine{}
	first := cmp.Or(a.Address, m.Kept(before))
	if first == "" {
		first = m.Best(ctx, serversOf(&a.Config))
	}
	all := m.All(first)
	return all[:min(len(all), limit)]
}

// serversOf are the servers that a host knows, as IP:port.
func serversOf(c *Config) []string {
	if c.Servers != nil {
		return c.Servers()
	}
	if c.REST == nil {
		return nil
	}
	u, err := url.Parse(c.REST.Host)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Host}
}
