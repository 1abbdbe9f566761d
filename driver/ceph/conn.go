package ceph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/driver/ceph/drift"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/optioninfo"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/ceph/placing"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// conn is the connection to one cluster, with the answers that need not be asked for again.
type conn struct {
	cfg    rados.Config
	client rados.Client
	dial   func(rados.Config) rados.Client
	now    func() time.Time
	waits  waits.Waits
	// patience is how long a first answer is waited for.
	patience time.Duration

	answered atomic.Bool  // the last time
	silences atomic.Int32 // how often they did not since they did; never that often before (anew)
	greeted  greeted      // of the mons one by one, when they did not

	mu       sync.Mutex
	osds     *osdMap         // of the epoch that it says
	mons     *monMap         // of the epoch that it says
	version  string          // since the election
	election int             // whose epoch this is
	entities map[string]bool // as last asked for
	placing  placing.Since
	strays   drift.Strays
	fs       *fsmap.Map   // of the epoch that it says
	pauses   fsmap.Pauses // of questions about filesystems
	mgrs     *orch.MgrMap // of the epoch that it says
	mgrEpoch int          // as last heard
	// mgrActive is the active manager, mgrSince when it was seen first to be available.
	mgrActive string
	mgrSince  time.Time
	crush     *crushMap // of the version that it says
	// owned are the options that Holdfast has set, nil when they have to be read; options what the release optionsOf says of those that were asked
	// for, and optionNames all names that it has, nil when they were not asked for.
	owned map[string]OwnedOption
	// defaults are those of new pools that it has set, nil when they have to be read.
	defaults    map[string]OwnedOption
	options     map[string]optioninfo.Info
	optionNames []string
	optionsOf   string
}

// close ends the connection. An error would concern a child that is to end anyway.
func (c *conn) close() { _ = c.client.Close() }

func keyOf(view *engine.View) types.NamespacedName {
	return types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}
}

// connected is the connection to a cluster; nil where there is none.
func (d *Driver) connected(name types.NamespacedName) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conns[name]
}

// connect returns the connection to the view's cluster, and makes it where there is none or where
// the mons' addresses or the key have changed. What is supposed changes none: a plan must not
// disturb the runs of the cluster.
func (d *Driver) connect(ctx context.Context, view *engine.View, secrets engine.SecretReader) (*conn, error) {
	name := keyOf(view)
	if view.Supposed {
		if c := d.connected(name); c != nil {
			return c, nil
		}
		if s, ok := secrets.(interface{ Present() engine.SecretReader }); ok { // propose has such
			secrets = s.Present()
		}
	}
	cfg, err := configOf(ctx, view, secrets)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.conns[name]
	if old != nil && old.cfg == cfg {
		return old, nil
	}
	dial := d.Dial
	if dial == nil {
		dial = rados.Dial
	}
	now := d.Now
	if now == nil {
		now = time.Now //nolint:forbidigo // when Ceph was asked; a plan takes it from what was observed
	}
	c := &conn{cfg: cfg, client: dial(cfg), dial: dial, pauses: fsmap.Pauses{}, now: now, waits: d.Waits.OrDefault(), patience: cmp.Or(d.FirstAnswer, firstAnswer)}
	c.silences.Store(math.MinInt32)
	if old != nil {
		// The mons are others by now, and yet the same cluster: it is given as long to answer as before.
		c.answered.Store(old.answered.Load())
		go old.close() // it may take a while when the child hangs
	}
	if d.conns == nil {
		d.conns = map[types.NamespacedName]*conn{}
	}
	d.conns[name] = c
	return c, nil
}

// configOf says how to reach the cluster: the addresses are those of its mon Daemons, the key is client.admin's.
func configOf(ctx context.Context, view *engine.View, secrets engine.SecretReader) (rados.Config, error) {
	members := monset.Of(view.Daemons)
	data, err := secrets.Secret(ctx, secretName(view.Cluster.Name, entityAdmin))
	if err != nil {
		return rados.Config{}, fmt.Errorf("reading the key of %s: %w", entityAdmin, err)
	}
	return rados.Config{
		FSID: clusterFSID(view), MonHost: monset.MonHost(members), Entity: entityAdmin, Key: string(data[secretKey]),
	}, nil
}
