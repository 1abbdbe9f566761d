// Package placing says how old what the mgr reports on placement groups may be.
package placing

import (
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

// Since remembers since when data belongs where it belongs now. The mgr's report on the placement
// groups says nothing of the map that it is about: for some seconds after a change all of them still
// look clean.
type Since struct {
	last string
	// since is zero as long as no change was seen.
	since time.Time
}

// Note keeps where data belongs by a map that was read now.
func (p *Since) Note(placement string, now time.Time) {
	if p.last != "" && p.last != placement {
		p.since = now
	}
	p.last = placement
}

// Recent says whether that changed less than age ago.
func (p *Since) Recent(now time.Time, age time.Duration) bool {
	return !p.since.IsZero() && now.Sub(p.since) < age
}

// ReportAge is how old the mons' knowledge of the placement groups may be.
func ReportAge(cluster *api.StorageCluster) time.Duration {
	return periodOf(cluster, "mgr_stats_period", statsPeriod) +
		periodOf(cluster, "mgr_tick_period", tickPeriod) + reportSlack
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
