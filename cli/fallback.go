package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/endpoints"
)

// dialTimeout is how long one server is waited for before the next one is tried.
const dialTimeout = 3 * time.Second

// fallback reaches another server where the one of this machine does not run: who is called at night logs in where it hurts.
type fallback struct {
	// own is the server that the kubeconfig names, as IP:port.
	own string
	// others are the servers that this machine's agent knows.
	others func() []string
	out    io.Writer
	once   *sync.Once
}

// withFallback has requests to the server of a machine reach another one that the machine knows. The certificate of each is good for one name.
func (g *globals) withFallback(config *rest.Config) {
	host, err := url.Parse(config.Host)
	if err != nil || g.err == nil {
		return
	}
	f := fallback{
		own:    host.Host,
		others: func() []string { return endpoints.Known(filepath.Join(g.dataDir, "host")) },
		out:    g.err, once: &g.elsewhere,
	}
	config.Dial, config.ServerName = f.dial, endpoints.ServerName
}

// dial has the signature of rest.Config.Dial.
func (f fallback) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(ctx, network, address)
	if err == nil || address != f.own || ctx.Err() != nil {
		return c, err
	}
	errs := []error{err}
	for _, other := range f.others() {
		if other == f.own {
			continue
		}
		if c, err = dialer.DialContext(ctx, network, other); err == nil {
			f.once.Do(func() {
				fmt.Fprintf(f.out, "cannot reach the server of this machine (%s): using another server (%s)\n", f.own, other)
			})
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
