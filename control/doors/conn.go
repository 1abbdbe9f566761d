package doors

import (
	"container/list"
	"net"
	"sync/atomic"
	"time"
)

// Conn is a connection that is counted until it is closed.
type Conn struct {
	net.Conn
	listener *Listener
	key      key
	number   uint64
	deadline *time.Timer
	// greeted is set once the client sent something.
	greeted atomic.Bool

	// The listener's mutex guards what follows.
	place   *list.Element
	group   string
	crowd   *crowd
	arrived bool
	known   bool
	closed  bool
	// refused is set when a bound closed the connection.
	refused  bool
	failures int
	// asking is set while a request of a stranger is there, and served when it came in whole and is
	// being worked on.
	asking, served bool
}

// Arrived tells that a request has come, at least its header. A stranger then has the rest of his
// time.
func (c *Conn) Arrived() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.arrived && !c.known {
		c.arrived = true
		c.deadline.Reset(l.strangerTime - l.headerTime)
	}
}

// Known tells that the client has proven who he is. From now on the connection counts as his.
func (c *Conn) Known(client string) {
	l := c.listener
	l.mu.Lock()
	if c.known || c.closed {
		l.mu.Unlock()
		return
	}
	c.known = true
	c.deadline.Stop()
	c.remove()
	victim, why := l.clients.add(c, client)
	l.count()
	l.mu.Unlock()
	if victim != nil {
		victim.refuse(map[string]string{"one": "client", "all": "clients"}[why])
	}
}

// Own tells that the client is one of the servers. Their connections are not counted.
func (c *Conn) Own() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.known || c.closed {
		return
	}
	c.known = true
	c.deadline.Stop()
	c.remove()
	l.count()
}

// Failed tells that a request was refused for want of a credential.
func (c *Conn) Failed() {
	l := c.listener
	l.mu.Lock()
	c.failures++
	many := !c.known && c.failures == mostFailures
	l.mu.Unlock()
	if many {
		c.refuse("requests")
	}
}

// Ask begins a request that is served to strangers: one at a time by each connection, however many
// streams it may have. The caller calls done afterwards.
func (c *Conn) Ask() (done func(), ok bool) {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.asking {
		return nil, false
	}
	c.asking = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.asking, c.served = false, false
	}, true
}

// Served tells that the stranger's request came in whole. Until it is done his connection is not
// closed for others to come in.
func (c *Conn) Served() {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	c.served = true
}

// Read notes that the client sent something.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.greeted.Load() {
		c.greeted.Store(true)
	}
	return n, err
}

// Close closes the connection, and counts it no more.
func (c *Conn) Close() error {
	l := c.listener
	l.mu.Lock()
	broken := c.greeted.Load() && !c.arrived && !c.known && !c.closed && !c.refused
	c.closed = true
	c.deadline.Stop()
	c.remove()
	if l.open[c.key] == c {
		delete(l.open, c.key)
	}
	l.count()
	l.mu.Unlock()
	if broken && l.Broken != nil {
		l.Broken(c.RemoteAddr().String())
	}
	return c.Conn.Close()
}

// refuse closes the connection because of a bound.
func (c *Conn) refuse(why string) {
	c.listener.mu.Lock()
	c.refused = true
	group, closed := c.group, c.closed
	c.listener.mu.Unlock()
	if closed {
		return
	}
	c.listener.refusals.note(why, group)
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // what is still to be sent is not waited for; an error means that it is closed
	}
	c.Close()
}
