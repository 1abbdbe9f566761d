package sim

import (
	"fmt"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// heedModes takes from the wanted daemons those of hosts that drain, and stops those of hosts in maintenance. It refuses what
// would leave less than a majority running. On a host that drains a daemon is removed when all others run.
func (p *toyPlan) heedModes(wanted []api.Daemon) []api.Daemon {
	wanted = p.follow(wanted)
	kept := slices.Clone(wanted)
	hosts := p.view.HostsByName()
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		switch h.ModeOf() {
		case api.HostMaintenance:
			p.stopOn(h.Name, kept)
		case api.HostDrain:
			kept = p.drainFrom(h.Name, wanted, kept)
		case api.HostActive:
		}
	}
	return kept
}

// follow removes each daemon of which the node moved to another host, and returns those that can be placed now.
func (p *toyPlan) follow(wanted []api.Daemon) []api.Daemon {
	return slices.DeleteFunc(slices.Clone(wanted), func(d api.Daemon) bool {
		have := p.daemon(d.Name)
		if have == nil || have.Spec.Host == d.Spec.Host {
			return false
		}
		if !p.enough(have.Spec.Host, wanted) {
			return true
		}
		p.decide("host/"+have.Spec.Host, api.VerdictWait, api.ReasonAwaitingReplacement, "toy "+have.Spec.ID+" moves to host "+d.Spec.Host)
		if have.DeletionTimestamp == nil {
			p.Remove = append(p.Remove, engine.Removal{Name: have.Name, Reason: "its node moved to host " + d.Spec.Host})
		}
		return true
	})
}

// enough says whether a majority of the wanted daemons runs without those of a host, and tells when not.
func (p *toyPlan) enough(host string, wanted []api.Daemon) bool {
	state, _ := p.view.System.(*ToyState)
	others := 0
	for i := range wanted {
		if have := p.daemon(wanted[i].Name); have != nil && have.Spec.Host != host && !p.stopped[have.Spec.Host] && state != nil && slices.Contains(state.Running, wanted[i].Spec.ID) {
			others++
		}
	}
	if others > len(wanted)/2 {
		return true
	}
	p.decide("host/"+host, api.VerdictRefuse, api.ReasonQuorumAtRisk, fmt.Sprintf("only %d of %d daemons would run, and a majority has to", others, len(wanted)))
	return false
}

func on(host string, daemons []api.Daemon) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool { return d.Spec.Host == host })
}

// told says whether all daemons of a host are told to stop already.
func (p *toyPlan) told(host string) bool {
	return !slices.ContainsFunc(p.view.Daemons, func(d api.Daemon) bool { return d.Spec.Host == host && d.Spec.State != api.WantStopped })
}

func (p *toyPlan) stopOn(host string, wanted []api.Daemon) {
	switch {
	case !on(host, wanted):
		return
	case !p.view.HostsByName()[host].AgentHeard() && !p.told(host):
		p.decide(engine.HostObject(host), api.VerdictWait, api.ReasonAgentDisconnected, "its agent is not heard: nothing is stopped until it is")
		return
	case !p.enough(host, wanted):
		return
	}
	p.stopped[host] = true
	for i := range wanted {
		if wanted[i].Spec.Host != host {
			continue
		}
		wanted[i].Spec.State = api.WantStopped
		if have := p.daemon(wanted[i].Name); have != nil && have.Status.State != api.DaemonStopped {
			p.decide("host/"+host, api.VerdictWait, api.ReasonStopping, "toy "+have.Spec.ID+" has not stopped yet")
		}
	}
}

// drainFrom removes the daemons of a host, and returns those that are wanted elsewhere.
func (p *toyPlan) drainFrom(host string, wanted, kept []api.Daemon) []api.Daemon {
	if on(host, wanted) && !p.enough(host, wanted) {
		return kept
	}
	kept = slices.DeleteFunc(kept, func(d api.Daemon) bool { return d.Spec.Host == host })
	if missing := p.missing(kept); missing != "" {
		if on(host, p.view.Daemons) {
			p.decide("host/"+host, api.VerdictWait, api.ReasonStarting, "toy "+missing+" does not run yet")
		}
		return kept
	}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.Spec.Host != host || p.removing(d.Name) {
			continue
		}
		p.decide("host/"+host, api.VerdictWait, api.ReasonRemoving, "toy "+d.Spec.ID+" is being removed")
		if d.DeletionTimestamp == nil {
			p.Remove = append(p.Remove, engine.Removal{Name: d.Name, Reason: "host " + host + " is being drained"})
		}
	}
	return kept
}

func (p *toyPlan) removing(name string) bool {
	return slices.ContainsFunc(p.Remove, func(r engine.Removal) bool { return r.Name == name })
}

// missing names a wanted daemon that does not run.
func (p *toyPlan) missing(wanted []api.Daemon) string {
	state, _ := p.view.System.(*ToyState)
	for i := range wanted {
		if state == nil || !slices.Contains(state.Running, wanted[i].Spec.ID) {
			return wanted[i].Spec.ID
		}
	}
	return ""
}
