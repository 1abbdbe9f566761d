package rbd

import (
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// idleTime is how long a connection that nobody uses is kept. Each has a process of its own.
const idleTime = time.Minute

// Clients are the connections to clusters, by how they are reached: when monitors move, or a key
// changes, another one is made.
type Clients struct {
	// Dial makes a connection; nil means rados.DialImages.
	Dial func(rados.Config) rados.ImageClient

	mu   sync.Mutex
	open map[rados.Config]*entry
}

type entry struct {
	client rados.ImageClient
	users  int
	idle   *time.Timer
}

// get returns a connection, which the caller gives back by done.
func (c *Clients) get(cfg rados.Config) (client rados.ImageClient, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.open[cfg]
	if e == nil {
		e = &entry{client: c.dial(cfg)}
		if c.open == nil {
			c.open = map[rados.Config]*entry{}
		}
		c.open[cfg] = e
	}
	if e.idle != nil {
		e.idle.Stop()
	}
	e.users++
	return e.client, func() { c.giveBack(cfg, e) }
}

func (c *Clients) dial(cfg rados.Config) rados.ImageClient {
	if c.Dial != nil {
		return c.Dial(cfg)
	}
	return rados.DialImages(cfg)
}

func (c *Clients) giveBack(cfg rados.Config, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users == 0 {
		e.idle = time.AfterFunc(idleTime, func() { c.end(cfg, e) })
	}
}

// end closes a connection that nobody has taken meanwhile.
func (c *Clients) end(cfg rados.Config, e *entry) {
	c.mu.Lock()
	free := e.users == 0 && c.open[cfg] == e
	if free {
		delete(c.open, cfg)
	}
	c.mu.Unlock()
	if free {
		_ = e.client.Close() // it ends a process, which the parent's end does as well
	}
}

// Close closes all connections.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cfg, e := range c.open {
		if e.idle != nil {
			e.idle.Stop()
		}
		_ = e.client.Close()
		delete(c.open, cfg)
	}
}
