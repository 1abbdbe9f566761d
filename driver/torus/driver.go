package torus

import (
	"context"
	"fmt"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Driver is the engine's driver for Torus. The zero value is ready for use; it holds nothing.
type Driver struct{}

var _ engine.Driver = Driver{}

// Type is torus.
func (Driver) Type() api.StorageType { return api.StorageTorus }

// Observation is what the nodes reported, by the names of their Daemons.
type Observation struct {
	Reports map[string]*torus.Report
}

// Observe reads the reports of the view's Daemons. It asks nobody.
func (Driver) Observe(_ context.Context, view *engine.View, _ engine.SecretReader) (any, error) {
	reports, err := engine.Reports(view, torus.TypeTorusd, torus.Parse)
	if len(reports) == 0 {
		return nil, err
	}
	return &Observation{Reports: reports}, err
}

// Unanswered says that no peer can speak for the cluster, though there was one before. It is pure.
func (Driver) Unanswered(view *engine.View) string {
	p := newPlanner(view, time.Time{})
	p.resolve()
	p.chooseSpeaker()
	if p.speaker != nil || !p.everUp() {
		return ""
	}
	return "no torusd is connected"
}

// MakeSecret is never asked for: no plan wants a Secret.
func (Driver) MakeSecret(want engine.SecretWant) (map[string][]byte, error) {
	return nil, fmt.Errorf("no secrets of the kind %q are made for Torus", want.Kind)
}

// Perform is never asked for: all commands go to daemons.
func (Driver) Perform(_ context.Context, _ *engine.View, cmd engine.Command, _ engine.SecretReader) error {
	return fmt.Errorf("%q is for the agent of a node: the command names no daemon", cmd.Verb)
}

// Forget has nothing to release.
func (Driver) Forget(string, string) {}
