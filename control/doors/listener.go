package doors

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Listener takes connections within Bounds. It is safe for concurrent use.
type Listener struct {
	net.Listener
	// Broken is called with the address of a client that said something and ended its connection
	// before its first request, as one does that does not trust the server's certificate. It is set
	// before the first Accept. Nil: nobody wants to know.
	Broken   func(address string)
	refusals *refusals
	// headerTime and strangerTime are shorter in tests.
	headerTime, strangerTime time.Duration

	mu     sync.Mutex
	number uint64
	open   map[key]*Conn
	// strangers come from other machines, and near ones from this one: who floods the network keeps
	// nobody out on the machine itself.
	strangers, near, clients *crowd
	pace                     *Pace
}

// key tells connections apart.
type key struct{ local, remote string }

// Wrap returns a listener that keeps the connections of another one within bounds.
func Wrap(l net.Listener, b Bounds, log *slog.Logger) *Listener {
	busy := func(c *Conn) bool { return c.served }
	never := func(*Conn) bool { return false }
	return &Listener{
		Listener: l, refusals: &refusals{log: log, port: portOf(l.Addr()), every: time.Second},
		headerTime: headerTime, strangerTime: strangerTime,
		open:      map[key]*Conn{},
		strangers: newCrowd(b.Strangers, b.PerAddress, busy), near: newCrowd(b.Strangers, b.Strangers, busy),
		clients: newCrowd(b.Clients, b.PerClient, never),
		pace:    NewPace(newPerSecond, newAtOnce),
	}
}

// How many connections one address may open. What goes beyond is closed before it costs a
// handshake.
const (
	newPerSecond rate.Limit = 100
	newAtOnce    int        = 1000 // a fleet behind one address that comes back at once
)

// Accept returns the next connection that is let in.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := l.admit(raw); conn != nil {
			return conn, nil
		}
	}
}

func (l *Listener) admit(raw net.Conn) *Conn {
	group, near := Group(raw.RemoteAddr().String())
	if !near && !l.pace.Allow(group) {
		l.refusals.note("pace", group)
		raw.Close()
		return nil
	}
	l.mu.Lock()
	l.number++
	conn := &Conn{Conn: raw, listener: l, key: keyOf(raw.LocalAddr(), raw.RemoteAddr()), number: l.number}
	conn.deadline = time.AfterFunc(l.headerTime, func() { conn.refuse("slow") })
	l.open[conn.key] = conn
	crowd := l.strangers
	if near {
		crowd = l.near
	}
	victim, why := crowd.add(conn, group)
	l.count()
	l.mu.Unlock()
	if victim != nil {
		victim.refuse(map[string]string{"one": "address", "all": "strangers"}[why])
	}
	return conn
}

// Find returns the connection between two addresses, as http.Request and its context tell them; nil
// for one that is closed.
func (l *Listener) Find(local net.Addr, remote string) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[key{local.String(), remote}]
}

func keyOf(local, remote net.Addr) key { return key{local.String(), remote.String()} }

// Group is what is counted together of those who come from an address, as IP:port; near is set for
// this machine's loopback.
func Group(address string) (group string, near bool) {
	p, err := netip.ParseAddrPort(address)
	if err != nil {
		return "unknown", false
	}
	ip := p.Addr().Unmap().WithZone("")
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip.String(), p.Addr().Unmap().IsLoopback()
}

// portOf is the number of the port that is listened on.
func portOf(a net.Addr) string {
	if _, port, err := net.SplitHostPort(a.String()); err == nil {
		return port
	}
	return a.String()
}
