// Package driver lists the storage systems that Holdfast knows: this is where a driver is
// registered.
package driver

import (
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/gluster"
	"github.com/holdfast-storage/holdfast/driver/torus"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Options are what drivers are made with.
type Options struct {
	// FirstAnswer is how long a storage system that did not answer the last time is waited for.
	FirstAnswer time.Duration
	// Waits say how long what is missing is waited for. Zero means the defaults.
	Waits waits.Waits
}

// All makes a driver for each storage system.
func All(o Options) []engine.Driver {
	return []engine.Driver{
		&ceph.Driver{FirstAnswer: o.FirstAnswer, Waits: o.Waits},
		gluster.Driver{Waits: o.Waits},
		torus.Driver{},
	}
}
