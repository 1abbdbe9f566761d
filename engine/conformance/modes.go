package conformance

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// about are the decisions of a plan about a host.
func about(p *engine.Plan, host string) (refused, waits []string) {
	for _, d := range p.Decisions {
		switch {
		case d.Object != engine.HostObject(host):
		case d.Verdict == api.VerdictRefuse:
			refused = append(refused, d.Message)
		case d.Verdict == api.VerdictWait:
			waits = append(waits, d.Message)
		}
	}
	return refused, waits
}

// Each host can be put into maintenance, at least while all others are there. Of none is nothing said before its daemons have stopped.
func heedsMaintenance(b *bench) {
	b.online("undisturbed")
	reached := 0
	for i := range b.Hosts {
		h := b.Hosts[i].Name
		if len(b.on(h)) == 0 {
			continue
		}
		if len(b.reach(h, api.HostMaintenance)) == 0 {
			reached++
		}
		b.host(h).Spec.Mode = api.HostActive
		b.online("with host " + h + " out of maintenance")
	}
	if reached == 0 {
		b.Errorf("no host can be had in maintenance")
	}
	for i := range b.Hosts {
		b.Hosts[i].Spec.Mode = api.HostMaintenance
	}
	if p := b.settle(); !slices.ContainsFunc(b.Hosts, func(h api.Host) bool { refused, _ := about(p, h.Name); return len(refused) > 0 }) {
		b.Errorf("all hosts at once are had in maintenance: %s", describe(p))
	}
	for i := range b.Hosts {
		b.Hosts[i].Spec.Mode = api.HostActive
	}
	b.online("with all hosts out of maintenance")
}

// reach gives a host a mode, and says why it is refused in the end; nothing when it is had. On the way nothing may be said only when
// nothing is left to do.
func (b *bench) reach(host string, mode api.HostMode) (refused []string) {
	b.Helper()
	b.host(host).Spec.Mode = mode
	var waits []string
	for range 60 {
		p := b.plan(b.observed())
		refused, waits = about(p, host)
		if len(refused)+len(waits) == 0 {
			b.left(host, mode)
		}
		if b.round(); p.Empty() && len(waits) == 0 {
			break
		}
		b.system.Act(b.World)
	}
	b.settle()
	if len(waits) > 0 {
		b.Errorf("host %s is to be in mode %s, and there is no end to it: %q", host, mode, waits)
	}
	return refused
}

// left fails if a host is not in a mode of which a plan says that it is.
func (b *bench) left(host string, mode api.HostMode) {
	b.Helper()
	for _, d := range b.Daemons {
		if d.Spec.Host == host && (mode == api.HostDrain || d.Status.State != api.DaemonStopped && d.Status.State != api.DaemonPrepared) {
			b.Fatalf("nothing is said of host %s, which is to be in mode %s, and daemon %s is there and %s", host, mode, d.Name, d.Status.State)
		}
	}
}

// Each host that is drained gives its daemons away, but for those that the subject says are anchored.
func heedsDrains(b *bench) {
	b.online("undisturbed")
	for i := range b.Hosts {
		h := b.Hosts[i].Name
		if len(b.on(h)) == 0 {
			continue
		}
		if refused, anchored := b.reach(h, api.HostDrain), slices.Contains(b.subject.Anchored, h); len(refused) > 0 != anchored {
			b.Errorf("host %s, drained (anchored: %v), is refused for %q", h, anchored, refused)
		}
		if b.status.Status.Status == api.StorageOffline {
			b.Errorf("with host %s drained, or refused to be, the cluster is OFFLINE: %q", h, b.status.Status.Reasons)
		}
		b.host(h).Spec.Mode = api.HostActive
		b.online("with host " + h + " not drained any more")
	}
}

// A silent agent is told to stop nothing: what is safe now may not be when it hears of it.
func heedsSilence(b *bench) {
	b.online("undisturbed")
	h := b.Hosts[0].Name
	running := b.on(h)
	b.silence(h, true)
	b.settle()
	b.host(h).Spec.Mode = api.HostMaintenance
	p := b.settle()
	if _, waits := about(p, h); len(waits) == 0 {
		if refused, _ := about(p, h); len(refused) == 0 {
			b.Errorf("nothing is said of host %s, which is to be in maintenance and whose agent is silent: %s", h, describe(p))
		}
	}
	for _, name := range running {
		if d := b.Daemons[name]; d == nil || d.DeletionTimestamp != nil || d.Spec.State != api.WantRunning {
			b.Errorf("daemon %s of a host whose agent is silent is told to stop", name)
		}
	}
	b.host(h).Spec.Mode = api.HostActive
	b.silence(h, false)
	b.online("with all agents heard again")
}
