// Package fallback reaches another server where the one of this machine does not run.
package fallback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout is how long one server is waited for before the next one is tried.
const dialTimeout = 3 * time.Second

// Dialer reaches another server where the one of this machine does not run: who is called at night
// logs in where it hurts.
type Dialer struct {
	// Own is the server that the kubeconfig names, as IP:port.
	Own string
	// Others are the servers that this machine's agent knows.
	Others func() []string
	// Out is told of it, once.
	Out  io.Writer
	Once *sync.Once
}

// Dial has the signature of rest.Config.Dial.
func (f Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(ctx, network, address)
	if err == nil || address != f.Own || ctx.Err() != nil {
		return c, err
	}
	errs := []error{err}
	for _, other := range f.Others() {
		if other == f.Own {
			continue
		}
		if c, err = dialer.DialContext(ctx, network, other); err == nil {
			f.Once.Do(func() {
				fmt.Fprintf(f.Out, "cannot reach the server of this machine (%s): using another server (%s)\n", f.Own, other)
			})
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
