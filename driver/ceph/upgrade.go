package ceph

import (
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
	"github.com/holdfast-storage/holdfast/engine"
)

// Packages are upgraded by the hosts' administrators. Processes run what they were started with until they are started again: here, in the order that
// Ceph's documentation asks for, one at a time, each type when all of the types before it run that release (Ceph docs, "Upgrading").

// maxReleases is how many releases an upgrade may go over at once.
const maxReleases = 2

// newer is the release that is installed on a daemon's host, if it is a newer one than the daemon runs; else empty. To an older one Ceph does not
// go back.
func (p *planner) newer(d *api.Daemon) string {
	h := p.hosts[d.Spec.Host]
	if h == nil || d.Status.Version == "" || !h.AgentHeard() || !slices.Contains(restartTypes, d.Spec.Type) {
		return ""
	}
	if installed := h.Status.Release(d.Spec.Type); installed != "" && olderRelease(d.Status.Version, installed) {
		return installed
	}
	return ""
}

// upgradeAwaits says what comes before a daemon is started again with a newer release; none where nothing does.
func (p *planner) upgradeAwaits(d *api.Daemon) (none engine.Objection) {
	release := p.newer(d)
	if over := releaseNumbers(release)[0] - releaseNumbers(d.Status.Version)[0]; over > maxReleases {
		return engine.Wait(api.ReasonUnsupported,
			"Ceph upgrades over at most %d releases: install a release between them first", maxReleases)
	}
	for _, daemonType := range restartTypes[:slices.Index(restartTypes, d.Spec.Type)] {
		switch x := p.oldestOf(daemonType); {
		case x == nil || !olderRelease(x.Status.Version, release):
		case p.newer(x) == "":
			return engine.Wait(api.ReasonDependencyNotReady, "waiting for %s, which runs %s: install Ceph %s on host %s, too",
				label(x), x.Status.Version, release, x.Spec.Host)
		default:
			return engine.Wait(api.ReasonOneAtATime, "waiting for the upgrade of %s", label(x))
		}
	}
	return none
}

// oldestOf is the daemon of a type that runs the oldest release, rather one on whose host no newer one is installed; nil where none tells. It is looked for
// once for all: of ten thousand daemons each asks.
func (p *planner) oldestOf(daemonType string) *api.Daemon {
	if p.oldest == nil {
		p.oldest = map[string]*api.Daemon{}
		for i := range p.view.Daemons {
			x := &p.view.Daemons[i]
			have := p.oldest[x.Spec.Type]
			switch {
			case x.DeletionTimestamp != nil || x.Status.Version == "":
			case have == nil || olderRelease(x.Status.Version, have.Status.Version),
				x.Status.Version == have.Status.Version && p.newer(have) != "" && p.newer(x) == "":
				p.oldest[x.Spec.Type] = x
			}
		}
	}
	return p.oldest[daemonType]
}

// tellUpgrade says which daemon with another release installed is not started again, and why: the first one of those that nothing else tells of.
func (p *planner) tellUpgrade() {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if p.newer(d) == "" || d.DeletionTimestamp != nil || p.closed(d.Spec.Host) {
			continue
		}
		if why := p.upgradeAwaits(d); !why.None() {
			verdict := map[bool]api.Verdict{true: api.VerdictWait, false: api.VerdictSkip}[p.moving]
			p.decide(verdict, why.Reason, label(d), "host %s has Ceph %s, but the daemon runs %s; %s",
				d.Spec.Host, p.newer(d), d.Status.Version, why.Message)
			return
		}
	}
}

// serviceUnready says what has to be there before a daemon of a service stops for a moment: the others of the service have to do their work, and
// of a filesystem only one MDS may work while they are of different releases.
func (p *planner) serviceUnready(d *api.Daemon) (none engine.Objection) {
	i := slices.IndexFunc(p.services, func(s *service) bool { return s.owns(d) })
	if i < 0 {
		return none
	}
	for _, x := range p.membersOf(&p.services[i].crew) {
		if x.Name != d.Name && (!told(x) || asked.Stopped(x)) && !p.closed(x.Spec.Host) && !p.services[i].ready(x) {
			return engine.Wait(api.ReasonAwaitingReplacement, "waiting for %s to serve again", label(x))
		}
	}
	for _, x := range p.filesystems {
		if x.service != p.services[i] || x.have == nil {
			continue
		}
		for _, rank := range slices.Sorted(maps.Keys(x.have.MDS)) {
			if m := x.have.MDS[rank]; m.State != fsmap.Active {
				return engine.Wait(api.ReasonAwaitingReplacement,
					"waiting for mds.%s (rank %d of filesystem %s) to be active", m.Name, rank, x.Name)
			}
		}
		if p.newer(d) != "" && len(x.have.MDS) > 1 {
			return engine.Wait(api.ReasonConfiguring,
				"filesystem %s is reduced to one active MDS before the upgrade of its MDS", x.Name)
		}
	}
	return none
}

// upgrading says whether MDS of a filesystem are of different releases, or are about to be.
func (p *planner) upgrading(x *fsPlan) bool {
	runs := ""
	for _, d := range p.membersOf(&x.service.crew) {
		switch {
		case p.newer(d) != "" && p.upgradeAwaits(d).None():
			return true
		case runs != "" && d.Status.Version != "" && d.Status.Version != runs:
			return true
		case d.Status.Version != "":
			runs = d.Status.Version
		}
	}
	return false
}
