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

// addresses lists the host's unicast addresses, the best one first.
func (a *agent) addresses(ctx context.Context) []string {
	const limit = 64 // the bound of Host.status.addresses
	all := ownaddress.Machine{}.All(cmp.Or(a.Address, ownaddress.Machine{}.Best(ctx, serversOf(&a.Config))))
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
