package ceph

import (
	"fmt"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Ceph's own defaults of how often OSDs report to the mgr, and the mgr to the mons.
const (
	statsPeriod = 5 * time.Second
	tickPeriod  = 2 * time.Second
	// reportSlack is what it takes beside to have a report written by the mons.
	reportSlack = time.Second
)

// placing remembers since when data belongs where it belongs now. The mgr's report on the placement groups says nothing of the map
// that it is about: for some seconds after a change all of them still look clean.
type placing struct {
	last string
	// since is zero as long as no change was seen.
	since time.Time
}

// note keeps where data belongs by a map that was read now.
func (p *placing) note(placement string, now time.Time) {
	if p.last != "" && p.last != placement {
		p.since = now
	}
	p.last = placement
}

// recent says whether that changed less than age ago.
func (p *placing) recent(now time.Time, age time.Duration) bool {
	return !p.since.IsZero() && now.Sub(p.since) < age
}

// placement is all in the map that decides where data belongs, in one word to be compared.
func (m *osdMap) placement() string {
	var b strings.Builder
	fmt.Fprintf(&b, "crush %d", m.Crush)
	for _, o := range m.OSDs {
		fmt.Fprintf(&b, " osd.%d %d %d %g", o.ID, o.Up, o.In, o.Weight)
	}
	for _, pool := range m.Pools {
		fmt.Fprintf(&b, " pool %s %d %d %d", pool.Name, pool.PGNum, pool.Size, pool.Rule)
	}
	return b.String()
}

// reportAge is how old the mons' knowledge of the placement groups may be.
func reportAge(cluster *api.StorageCluster) time.Duration {
	return periodOf(cluster, "mgr_stats_period", statsPeriod) + periodOf(cluster, "mgr_tick_period", tickPeriod) + reportSlack
}

// periodOf is an option of the mgr in seconds, as the spec has it or by Ceph's default.
func periodOf(cluster *api.StorageCluster, option string, period time.Duration) time.Duration {
	if cluster.Spec.Ceph == nil {
		return period
	}
	for _, section := range []string{"global", "mgr"} {
		value := string(cluster.Spec.Ceph.Config[section][option])
		if d, err := time.ParseDuration(strings.TrimSuffix(value, "s") + "s"); err == nil && d > 0 {
			period = d
		}
	}
	return period
}
