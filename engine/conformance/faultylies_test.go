package conformance

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// believing makes a driver that does something with what a host made up, and with a running daemon of another host.
func believing(do func(p *engine.Plan, made string, other *api.Daemon)) func(engine.Driver) engine.Driver {
	return spoiling(func(v *engine.View, p *engine.Plan) {
		for _, h := range v.Hosts {
			if !strings.Contains(h.Status.AgentVersion, lieMark) {
				continue
			}
			for i := range v.Daemons {
				if d := &v.Daemons[i]; d.Spec.Host != h.Name && d.Spec.State == api.WantRunning && d.DeletionTimestamp == nil {
					do(p, h.Status.AgentVersion, d)
					return
				}
			}
		}
	})
}

// faultsOfLies are drivers that believe what a host says of itself.
var faultsOfLies = []fault{
	{"believes no lies", "needs an address", spoiling(func(v *engine.View, _ *engine.Plan) {
		for _, h := range v.Hosts {
			_ = h.Status.Addresses[0]
		}
	}), "planning panics"},
	{"believes no lies", "passes it on", believing(func(p *engine.Plan, made string, other *api.Daemon) {
		d := *other.DeepCopy()
		d.Spec.Command = append(d.Spec.Command, made)
		p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d})
	}), "has what host"},
	{"believes no lies", "stops another", believing(func(p *engine.Plan, _ string, other *api.Daemon) {
		d := *other.DeepCopy()
		d.Spec.State = api.WantStopped
		p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d})
	}), "is brought to Stopped"},
	{"believes no lies", "removes another", believing(func(p *engine.Plan, _ string, other *api.Daemon) {
		p.Remove = append(p.Remove, engine.Removal{Name: other.Name, Reason: "so it is said"})
	}), "is removed by what host"},
	{"believes no lies", "commands by it", believing(func(p *engine.Plan, made string, _ *api.Daemon) {
		p.Commands = append(p.Commands, engine.Command{Verb: "set", Object: made})
	}), `"set" of`},
}
