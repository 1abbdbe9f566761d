package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// tellChecks are Ceph's health checks with the next steps for this very cluster: with names where Ceph has told them, and with the way out of
// maintenance where that is the reason.
func (p *planner) tellChecks() []api.HealthCheck {
	checks := slices.Clone(p.seen.Checks[:min(len(p.seen.Checks), maxChecks)])
	for i := range checks {
		c := &checks[i]
		if hosts := p.kept(c); len(hosts) > 0 {
			c.Next = fmt.Sprintf("%s: to return it to service, run 'holdfast host maintenance exit %s'",
				maintenanceText(hosts), hosts[0])
			continue
		}
		c.Next = words.Cut(cmp.Or(nextHere(p, c.Code), p.withNames(*c)), maxMessage)
	}
	return checks
}

// nextHere is the next step of a check where the cluster's own map tells more than Ceph's text; else empty.
func nextHere(p *planner, code string) string {
	switch {
	case code == "OSDMAP_FLAGS" || code == "OSD_OSDMAP_FLAGS":
		return health.UnsetAll(p.seen.Found.Flags)
	case !slices.Contains(availabilityChecks, code) || !p.poolsKnown():
		return ""
	}
	var pools []*writes.Pool
	for i := range p.seen.Pools {
		pools = append(pools, poolFacts(p, &p.seen.Pools[i]))
	}
	return writes.Placing(clusterFacts(p), pools)
}

func maintenanceText(hosts []string) string {
	if len(hosts) == 1 {
		return "host " + hosts[0] + " is in maintenance"
	}
	return "hosts " + words.Few(hosts) + " are in maintenance; of each"
}

// kept are the hosts in maintenance that a check comes of; none where something else is behind it, too.
func (p *planner) kept(c *api.HealthCheck) []string {
	var down []string
	switch code := c.Code; {
	case code == "MON_DOWN":
		down = p.monHostsOut()
	case code == "OSD_FLAGS":
		down = p.hostsFlagged(c.Detail)
	case code == "PG_DEGRADED", code == "OSD_DOWN", strings.HasPrefix(code, "OSD_") && strings.HasSuffix(code, "_DOWN"):
		down = p.osdHostsDown()
	}
	if slices.ContainsFunc(down, func(host string) bool { return !p.keepsNoout(host) }) {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(down)))
}

// monHostsOut are the hosts of the mons that are not in the quorum.
func (p *planner) monHostsOut() (hosts []string) {
	for _, m := range p.members {
		if !slices.Contains(p.seen.Quorum, m.ID) {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// osdHostsDown are the hosts of the OSDs that are down, empty for one that is nobody's.
func (p *planner) osdHostsDown() (hosts []string) {
	for _, id := range slices.Sorted(maps.Keys(p.seen.OSDs)) {
		if seen := p.seen.OSDs[id]; !seen.Up && seen.In {
			hosts = append(hosts, p.hostOfOSD(strconv.Itoa(id)))
		}
	}
	return hosts
}

// hostsFlagged are the hosts of OSDs with noout alone, and empty for what a person set.
func (p *planner) hostsFlagged(detail []string) (hosts []string) {
	for _, line := range detail {
		if id := health.NooutAlone(line); id != "" {
			hosts = append(hosts, p.hostOfOSD(id))
			continue
		}
		hosts = append(hosts, "")
	}
	return hosts
}

// hostOfOSD is empty for an OSD that is nobody's.
func (p *planner) hostOfOSD(id string) string {
	if d := p.have[daemonName(p.cluster.Name, "osd", id)]; d != nil {
		return d.Spec.Host
	}
	return ""
}

// withNames is the next step of a check, with the first of the names that Ceph's text has.
func (p *planner) withNames(c api.HealthCheck) string {
	next := health.WithNames(c)
	if again := health.Peering(c); again != "" && len(p.osdHostsDown()) == 0 {
		return again
	}
	if hosts := p.monHostsOut(); c.Code == "MON_DOWN" && len(hosts) > 0 {
		i := slices.IndexFunc(p.members, func(m member) bool { return m.Host == hosts[0] })
		next = strings.NewReplacer("mon.NAME", "mon."+p.members[i].ID, "HOST", hosts[0]).Replace(c.Next)
	}
	return next
}
