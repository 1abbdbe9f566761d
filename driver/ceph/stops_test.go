package ceph

import (
	"slices"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// OSDs do not stop by a plan that takes others back in, whether the mons keep them in already or not.
func TestMaintenance_whileOthersComeBack(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.mode(3, api.HostDrain)
	for range 30 {
		if f.agents(); len(commandsOf(f.round(t), verbReweight)) > 0 {
			break
		}
	}
	f.mode(3, api.HostActive)
	f.mode(2, api.HostMaintenance)
	for _, kept := range []bool{false, true} {
		v, _, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := v.System.(*Observation)
		osd := o.OSDs[1]
		osd.Noout = kept
		o.OSDs[1] = osd
		p := f.planAt(v, f.now)
		if len(commandsOf(p, verbReweight)) == 0 {
			t.Fatalf("kept in %v: no OSD is taken back: %v", kept, decisions(p))
		}
		if slices.ContainsFunc(p.Daemons, func(c engine.DaemonChange) bool { return c.Daemon.Spec.State == api.WantStopped }) {
			t.Errorf("kept in %v: an OSD is told to stop: %v", kept, decisions(p))
		}
	}
	if f.settle(t); !slices.Contains(f.states("h2"), "osd.1=Stopped") {
		t.Errorf("after that the host's daemons are to be %v", f.states("h2"))
	}
}

func commandsOf(p *engine.Plan, verb string) []engine.Command {
	return slices.DeleteFunc(slices.Clone(p.Commands), func(c engine.Command) bool { return c.Verb != verb })
}
