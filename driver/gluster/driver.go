package gluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/resolve"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Driver is the engine's driver for GlusterFS. The zero value is ready for use.
type Driver struct {
	// Waits are how long what is missing has to come back. Zero means the defaults.
	Waits waits.Waits
}

var _ engine.ActionDriver = Driver{}

// Type is glusterfs.
func (Driver) Type() api.StorageType { return api.StorageGlusterFS }

// Handlers carry out the Action that resolves split-brain.
func (Driver) Handlers(store engine.Store) []action.Handler {
	return []action.Handler{resolve.Resolver{Store: store}}
}

// Observation is what the nodes reported, by the names of their Daemons.
type Observation struct {
	Reports map[string]*glusterd.Report
	// NFS are those of NFS servers.
	NFS map[string]*ganesha.Report
}

// Observe reads the reports of the view's Daemons. It asks nobody.
func (Driver) Observe(_ context.Context, view *engine.View, _ engine.SecretReader) (any, error) {
	reports, err := engine.Reports(view, glusterd.Type, glusterd.Parse)
	if len(reports) == 0 {
		return nil, err
	}
	servers, broken := engine.Reports(view, ganesha.Type, ganesha.Parse)
	return &Observation{Reports: reports, NFS: servers}, errors.Join(err, broken)
}

// Unanswered says that no node can speak for the pool, though there was one before. It is pure.
func (d Driver) Unanswered(view *engine.View) string {
	p := newPlanner(view, time.Time{}, d.Waits)
	p.resolve()
	p.chooseSpeaker()
	if p.speaker != nil || p.neverUp() {
		return ""
	}
	return "no glusterd of the pool answers"
}

// MakeSecret is never asked for: no plan wants a Secret.
func (Driver) MakeSecret(want engine.SecretWant) (map[string][]byte, error) {
	return nil, fmt.Errorf("GlusterFS has no secrets of the kind %q", want.Kind)
}

// Perform is never asked for: all commands go to daemons.
func (Driver) Perform(_ context.Context, _ *engine.View, cmd engine.Command, _ engine.SecretReader) error {
	return fmt.Errorf("%q is for the agent of a node: the command names no daemon", cmd.Verb)
}

// Forget has nothing to release.
func (Driver) Forget(string, string) {}
