package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/turn"
)

// Deadlines of what a run asks of others, where the Orchestrator does not say otherwise.
const (
	defaultObserveTimeout = 10 * time.Second
	defaultCommandTimeout = time.Minute
	// storeTimeout bounds each write to the store. The API server itself gives up on etcd earlier.
	storeTimeout = 30 * time.Second
)

// Orchestrator is the ServiceManager of a storage system that a Driver knows. Its exported fields are set before its first
// use. It remembers the last view of each cluster, to find differences.
type Orchestrator struct {
	Store  Store
	Driver Driver
	// Leader is this server's name, for reports.
	Leader string
	Log    *slog.Logger
	// Places keeps the daemons of clusters that are planned at one moment apart. All Orchestrators of
	// a leader share one: a Ceph and a GlusterFS cluster may want the same port. Nil is one of its own.
	Places *Places
	// ObserveTimeout bounds Driver.Observe; zero means 10 s.
	ObserveTimeout time.Duration
	// CommandTimeout bounds each command, whether the driver or an agent carries it out; zero means one minute.
	CommandTimeout time.Duration

	mu     sync.Mutex
	memory map[types.NamespacedName]*memory

	// own stands in for Places where that is nil.
	own Places
}

// memory is what is kept of a cluster from run to run. But for asking, it is used by one run at a time.
type memory struct {
	// asking is held while the storage system is asked for its state: by a run, by Suppose or by Look.
	asking turn.Turn

	view *View
	// unsent are events that could not be written yet.
	unsent []Event
	// told is what the store has recorded, entriesTold how many entries of a view it had then, leader and outcome what it
	// shall record beside the view.
	told        Told
	entriesTold int
	leader      string
	outcome     api.OrchestrationOutcome
	// flaps are the objects that went up and down of late.
	flaps flaps
	// tries are the commands that failed.
	tries tries
	// outages are the resources that went out of reach of late.
	outages outages
}

var _ ServiceManager = (*Orchestrator)(nil)

// Name is the storage system.
func (o *Orchestrator) Name() string { return string(o.Driver.Type()) }

// RefreshKeys are all kinds that a View is made of, but for those that only the engine writes.
func (o *Orchestrator) RefreshKeys() []RefreshKey {
	keys := []RefreshKey{{Kind: KindCluster}, {Kind: KindNode}, {Kind: KindDaemon}, {Kind: KindHost}, {Kind: KindAction}}
	for _, list := range api.ResourceLists() {
		keys = append(keys, RefreshKey{Kind: list.NewResource().ResourceKind()})
	}
	return keys
}

// HandleRefresh orchestrates one cluster: it takes the cluster's lock, makes a view, tells of differences, asks the driver
// for a plan, carries it out, and leaves a report, also of a run that failed.
func (o *Orchestrator) HandleRefresh(ctx context.Context, e *RefreshEvent) error {
	if err := o.adopt(ctx, e.Cluster); err != nil {
		return o.gone(e.Cluster, fmt.Errorf("while adopting cluster %s: %w", e.Cluster, err))
	}
	ctx, unlock, err := o.lock(ctx, e.Cluster)
	if err != nil {
		return fmt.Errorf("while locking cluster %s: %w", e.Cluster, err)
	}
	defer unlock()
	r := run{
		Orchestrator: o, event: e, memory: o.remember(e.Cluster), started: time.Now(),
		log: o.Log.With("cluster", e.Cluster.String()), placed: func() {},
	}
	return o.gone(e.Cluster, r.do(ctx))
}

func (o *Orchestrator) adopt(ctx context.Context, cluster types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return o.Store.Adopt(ctx, cluster)
}

// lock takes the cluster's lock. The taking has a deadline, and what is returned has none: the context of a Store's lock
// ends with the one that it was asked with, so a timer ends the asking alone.
func (o *Orchestrator) lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(storeTimeout, func() { cancel(fmt.Errorf("no answer for %s", storeTimeout)) })
	locked, unlock, err := o.Store.Lock(ctx, cluster)
	late.Stop()
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return locked, func() { unlock(); cancel(nil) }, nil
}

// gone forgets a cluster when err says that there is none, and returns err.
func (o *Orchestrator) gone(cluster types.NamespacedName, err error) error {
	if errors.Is(err, ErrNotFound) {
		o.forget(cluster)
	}
	return err
}

func (o *Orchestrator) remember(cluster types.NamespacedName) *memory {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.memory == nil {
		o.memory = map[types.NamespacedName]*memory{}
	}
	m := o.memory[cluster]
	if m == nil {
		m = &memory{asking: turn.New(), outages: outages{}}
		o.memory[cluster] = m
	}
	return m
}

func (o *Orchestrator) forget(cluster types.NamespacedName) {
	o.mu.Lock()
	delete(o.memory, cluster)
	o.mu.Unlock()
	o.Driver.Forget(cluster.Namespace, cluster.Name)
}

// Close forgets all clusters: leadership is over. No HandleRefresh may be going on.
func (o *Orchestrator) Close() error {
	o.mu.Lock()
	known := o.memory
	o.memory = nil
	o.mu.Unlock()
	for cluster := range known {
		o.Driver.Forget(cluster.Namespace, cluster.Name)
	}
	return nil
}

// sharedPlaces are taken from the making of a plan that places daemons until they are written.
func (o *Orchestrator) sharedPlaces() *Places {
	if o.Places != nil {
		return o.Places
	}
	return &o.own
}

func (o *Orchestrator) observeTimeout() time.Duration {
	if o.ObserveTimeout > 0 {
		return o.ObserveTimeout
	}
	return defaultObserveTimeout
}

func (o *Orchestrator) commandTimeout() time.Duration {
	if o.CommandTimeout > 0 {
		return o.CommandTimeout
	}
	return defaultCommandTimeout
}

func clusterKey(c *api.StorageCluster) types.NamespacedName { return key(c.Namespace, c.Name) }
