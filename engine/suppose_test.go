package engine_test

import (
	"context"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// asked notes the mode in which a driver is shown a host when it asks its storage system.
type asked struct {
	*sim.Toy
	mode api.HostMode
}

func (a *asked) Observe(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
	a.mode = v.Hosts[0].ModeOf()
	return a.Toy.Observe(ctx, v, s)
}

// What is supposed is known before the storage system is asked: a driver asks about hosts by their modes.
func TestSuppose_asksForWhatIsSupposed(t *testing.T) {
	l := newLab(t)
	d := &asked{Toy: l.toy}
	l.orch.Driver = d
	v, _, err := l.orch.Suppose(t.Context(), toyKey, func(v *engine.View) { v.SetHostMode("h1", api.HostMaintenance) })
	if err != nil || d.mode != api.HostMaintenance || v.Hosts[0].ModeOf() != api.HostMaintenance {
		t.Errorf("asked in mode %s, planned in mode %s, %v", d.mode, v.Hosts[0].ModeOf(), err)
	}
	h := &api.Host{}
	h.Name = "h1"
	if err := l.Get(t.Context(), h); err != nil || h.ModeOf() != api.HostActive {
		t.Errorf("the host is now in mode %s, %v", h.ModeOf(), err)
	}
}
