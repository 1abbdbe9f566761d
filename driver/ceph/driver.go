package ceph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/daemonaction"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Driver is the engine's driver for Ceph. The zero value is ready for use, in a program that calls rados.MaybeServe.
type Driver struct {
	// Dial connects to a cluster; nil means rados.Dial. Tests put a fake here.
	Dial func(rados.Config) rados.Client
	// Greet says whether a mon answers at its address; nil means rados.Greet, and nobody where Dial is set. Tests put a fake here.
	Greet func(ctx context.Context, address string) error
	// FirstAnswer is how long mons that have not answered yet are waited for. Zero is a moment, for those who ask again soon.
	FirstAnswer time.Duration
	// Now tells the time at which Ceph answered; nil means time.Now.
	Now func() time.Time
	// Waits are how long what is missing has to come back. Zero means the defaults.
	Waits waits.Waits

	mu    sync.Mutex
	conns map[types.NamespacedName]*conn
}

var (
	_ engine.ActionDriver = (*Driver)(nil)
	_ engine.Wiper        = (*Driver)(nil)
	_ engine.Labeler      = (*Driver)(nil)
)

// Type is ceph.
func (d *Driver) Type() api.StorageType { return api.StorageCeph }

// Handlers carry out the Actions that recover mons, that hand an adopted cluster over, and that stop, start and
// restart daemons.
func (d *Driver) Handlers(store engine.Store) []action.Handler {
	own := []action.Handler{Recoverer{Store: store, Driver: d}, HandOver{Store: store, Driver: d}}
	return append(own, daemonaction.Handlers(daemonaction.Config{Store: store, Driver: d, Types: restartTypes})...)
}

// Figures asks the mons over the connection that orchestrations use; nil where there is none.
func (d *Driver) Figures(ctx context.Context, namespace, name string) (*api.StorageFigures, error) {
	c := d.connected(types.NamespacedName{Namespace: namespace, Name: name})
	if c == nil {
		return nil, nil
	}
	var status statusAnswer
	if err := c.first(ctx, laterAnswer, &status); err != nil {
		return nil, fmt.Errorf("while asking the mons for their status: %w", err)
	}
	return status.PGMap.Figures(c.now()), nil
}

// Forget closes the connection to a cluster.
func (d *Driver) Forget(namespace, name string) {
	d.mu.Lock()
	c := d.conns[types.NamespacedName{Namespace: namespace, Name: name}]
	delete(d.conns, types.NamespacedName{Namespace: namespace, Name: name})
	d.mu.Unlock()
	if c != nil {
		c.close()
	}
}
