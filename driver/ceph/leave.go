package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// leaveMaintenance takes the flag noout from the OSDs of hosts that are not in maintenance: of each when it is up, or when it
// is not to be expected any more. The flag of single OSDs is Holdfast's own; those of CRUSH buckets and of the whole cluster
// are the administrator's and are left alone.
func (p *planner) leaveMaintenance() {
	if !p.reachable() {
		return
	}
	var unset []string
	waiting := map[string][]string{}
	for _, o := range p.osds {
		seen := p.seen.OSDs[o.id]
		switch {
		case !seen.Noout || seen.UUID != o.uuid || p.keepsNoout(o.host):
		case seen.Up || !p.expected(o):
			unset = append(unset, o.label())
		default:
			waiting[o.host] = append(waiting[o.host], o.label())
		}
	}
	if len(unset) > 0 {
		p.command(api.ReasonHostNotActive, verbUnsetNoout, strings.Join(unset, ", "), nil, "the host left maintenance")
	}
	p.awaitStarts(waiting)
}

// keepsNoout says whether a host in maintenance is on its way there, or there. One that is refused has lost nothing, and its
// OSDs may be marked out as ever.
func (p *planner) keepsNoout(host string) bool {
	return p.hosts[host].ModeOf() == api.HostMaintenance && !p.refusedHost(host)
}

// refusedHost says whether a host was refused its mode.
func (p *planner) refusedHost(host string) bool {
	return slices.ContainsFunc(p.plan.Decisions, func(d api.Decision) bool {
		return d.Object == engine.HostObject(host) && d.Verdict == api.VerdictRefuse
	})
}

// expected says whether an OSD that is down is on its way up.
func (p *planner) expected(o *osd) bool {
	h, d := p.hosts[o.host], p.have[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]
	if h == nil || d == nil || asked.Stopped(d) || p.silentFor(h) > p.waits.OSDBack {
		return false
	}
	switch d.Status.State {
	case api.DaemonFailed, api.DaemonBackOff:
		return false
	case api.DaemonRunning:
		return d.Status.Started == nil || p.now.Sub(d.Status.Started.Time) < p.waits.OSDBack
	default:
		return true
	}
}

// silentFor is how long ago the leader found that the host's agent is not heard; zero while it is.
func (p *planner) silentFor(h *api.Host) time.Duration {
	since, silent := h.SilentSince()
	if !silent {
		return 0
	}
	return p.now.Sub(since)
}

// awaitStarts tells what active hosts wait for. That one leaves maintenance is known of the flag noout on its OSDs alone: a daemon that is stopped
// may as well be starting again for another configuration.
func (p *planner) awaitStarts(waiting map[string][]string) {
	leaving := maps.Clone(waiting)
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		stopped := d.Spec.State == api.WantStopped || d.Status.State == api.DaemonStopped || d.Status.State == api.DaemonStopping
		if stopped && !asked.Stopped(d) && d.Spec.Type != TypeOSD && d.DeletionTimestamp == nil && p.hosts[d.Spec.Host] != nil && p.hosts[d.Spec.Host].ModeOf() == api.HostActive {
			waiting[d.Spec.Host] = append(waiting[d.Spec.Host], label(d))
		}
	}
	for _, host := range slices.Sorted(maps.Keys(waiting)) {
		why := ""
		if len(leaving[host]) > 0 {
			why = "leaving maintenance: "
		}
		p.awaitHost(host, api.ReasonStarting, "%swaiting for %s to return", why,
			words.Few(slices.Sorted(slices.Values(waiting[host]))))
	}
}
