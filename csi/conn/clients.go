// Package conn has what the back ends for Ceph share: connections to clusters, the codes of Ceph's
// errors, and what pools have left.
package conn

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
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

// Get returns the connection that secrets describe; done gives it back.
func (c *Clients) Get(secrets backend.Secrets) (client rados.ImageClient, done func(), err error) {
	if err := secrets.Check(); err != nil {
		return nil, nil, err
	}
	client, done = c.get(rados.Config{
		FSID: secrets[backend.SecretCluster], MonHost: secrets[backend.SecretMons],
		Entity: "client." + secrets[backend.SecretUser], Key: secrets[backend.SecretKey],
	})
	return client, done, nil
}

// For is Get for a volume, which has to be of the cluster that secrets describe.
func (c *Clients) For(
	secrets backend.Secrets, h backend.Handle,
) (client rados.ImageClient, done func(), err error) {
	if err := secrets.Check(); err != nil {
		return nil, nil, err
	}
	if secrets[backend.SecretCluster] != h.Cluster {
		return nil, nil, status.Errorf(codes.FailedPrecondition,
			"volume %s is of the Ceph cluster %s, and the Secret is of the cluster %s; correct the Secret", h,
			h.Cluster, secrets[backend.SecretCluster])
	}
	return c.Get(secrets)
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

// later are refusals of a command that Ceph may take in a moment, such as those of a manager that
// has just become the active one.
var later = []syscall.Errno{syscall.EAGAIN, syscall.EOPNOTSUPP, syscall.ETIMEDOUT, syscall.ESHUTDOWN}

// Told gives an error of Ceph's its code.
func Told(err error) error {
	_, has := status.FromError(err)
	switch {
	case err == nil || has:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, rados.ErrNoAnswer):
		return status.Errorf(codes.Unavailable, "Ceph does not answer: %v; the call is made again", err)
	case errors.Is(err, syscall.ENOENT):
		return status.Errorf(codes.NotFound, "Ceph does not know it: %v", err)
	}
	for _, errno := range later {
		if errors.Is(err, errno) {
			return status.Errorf(codes.Unavailable, "Ceph cannot do it now: %v; the call is made again", err)
		}
	}
	return status.Errorf(codes.Internal, "Ceph refused: %v", err)
}
