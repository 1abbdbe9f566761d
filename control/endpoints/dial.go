package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout is how long one server may take to answer before the next one is tried.
	dialTimeout = 2 * time.Second
	// deadAfter is how long sent data may stay unacknowledged before the connection is given up. It finds a server that
	// was switched off or cut off, which sends no word of it.
	deadAfter = 8 * time.Second
	// tolerated is how many answers in a row may say that the server cannot work, before another one is tried.
	tolerated = 3
)

// dialer connects to one of the servers: the last one that was good first, then the others in their order.
type dialer struct {
	servers func() []string
	net     net.Dialer

	mu   sync.Mutex
	good string
	// avoid is the server that comes last.
	avoid    string
	failures int
	// answered is when a server last gave an answer that says that it works.
	answered time.Time
	open     map[*conn]struct{}
}

func newDialer(servers func() []string) *dialer {
	d := &dialer{servers: servers, open: map[*conn]struct{}{}}
	d.net = net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter / 2, Interval: time.Second, Count: 4},
		ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
			}), err)
		},
	}
	return d
}

// dial has the signature of rest.Config.Dial. The address that it is asked for stands for all servers.
func (d *dialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var errs []error
	for _, server := range d.order() {
		c, err := d.net.DialContext(ctx, network, server)
		if err == nil {
			return d.opened(server, c), nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no server can be reached: %w", errors.Join(errs...))
}

func (d *dialer) order() []string {
	servers := d.servers()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, server := range servers {
		if server == d.good {
			servers = append(servers[i:len(servers):len(servers)], servers[:i]...)
			break
		}
	}
	if i := slices.Index(servers, d.avoid); i >= 0 {
		return append(slices.Delete(slices.Clone(servers), i, i+1), d.avoid)
	}
	return servers
}

func (d *dialer) opened(server string, c net.Conn) net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.good, d.failures = server, 0
	tracked := &conn{Conn: c, dialer: d}
	d.open[tracked] = struct{}{}
	return tracked
}

// conn is forgotten when it is closed.
type conn struct {
	net.Conn
	dialer *dialer
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// leave closes all connections and prefers the server after the one that was good. Where there is no other, it stays: to connect
// anew would only be more to do for a server that has too much to do.
func (d *dialer) leave() {
	order := d.order()
	d.mu.Lock()
	d.failures = 0
	if len(order) < 2 {
		d.mu.Unlock()
		return
	}
	d.good = order[1]
	open := make([]*conn, 0, len(d.open))
	for c := range d.open {
		open = append(open, c)
	}
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // Whoever uses the connection gets the error.
	}
}

// watch looks at the answers of the server. One that can be reached, but cannot work because it lost the quorum, is left
// for another.
func (d *dialer) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		response, err := next.RoundTrip(r)
		if r.Context().Err() != nil && !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			return response, err
		}
		if d.note(began, err != nil || broken(response.StatusCode)) {
			d.leave()
		}
		return response, err
	})
}

func broken(status int) bool {
	return status == http.StatusInternalServerError || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// note counts the failures in a row, and says whether there are too many. That a request came to nothing which was sent before the
// last good answer says nothing: the server works, and has much to do.
func (d *dialer) note(began time.Time, failed bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !failed {
		d.failures, d.answered = 0, time.Now()
		return false
	}
	if began.Before(d.answered) {
		return false
	}
	d.failures++
	return d.failures >= tolerated
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
