package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
)

// cephSocket is where the simulated Ceph listens, in the server's working directory.
const cephSocket = "ceph.sock"

// gather is how long the simulated Ceph gathers changes of daemons before it looks at them.
const gather = 20 * time.Millisecond

// cephs are the simulated Ceph clusters, by fsid. What runs is told by the simulated hosts.
type cephs struct {
	mu       sync.Mutex
	clusters map[string]*simulated
}

type simulated struct {
	*radostest.Cluster
	running map[string]api.Daemon
	dirty   bool
}

func newCephs() *cephs { return &cephs{clusters: map[string]*simulated{}} }

func (c *cephs) cluster(fsid string) *simulated {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.clusters[fsid]
	if x == nil {
		x = &simulated{Cluster: radostest.New(), running: map[string]api.Daemon{}}
		c.clusters[fsid] = x
	}
	return x
}

// set notes that a daemon runs, or not any more.
func (c *cephs) set(d *api.Daemon, runs bool) {
	x := c.cluster(d.Spec.Parameters[ceph.ParamFSID])
	c.mu.Lock()
	defer c.mu.Unlock()
	x.dirty = true
	if !runs {
		delete(x.running, d.Name)
		return
	}
	running := *d.DeepCopy()
	running.Status.State = api.DaemonRunning
	x.running[d.Name] = running
}

// run lets the clusters follow what runs, until ctx ends.
func (c *cephs) run(ctx context.Context) {
	tick := time.NewTicker(gather)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.follow()
		}
	}
}

func (c *cephs) follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.clusters {
		if !x.dirty {
			continue
		}
		x.dirty = false
		daemons := make([]api.Daemon, 0, len(x.running))
		for _, d := range x.running {
			daemons = append(daemons, d)
		}
		x.Sync(daemons)
	}
}

// serve answers the server's children for librados until ctx ends.
func (c *cephs) serve(ctx context.Context, path string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("while starting the simulated Ceph: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			go func() {
				defer conn.Close()
				_ = rados.ServeClient(conn, conn, func(cfg rados.Config) rados.Client { return c.cluster(cfg.FSID).Dial(cfg) })
			}()
		}
	}()
	return nil
}
