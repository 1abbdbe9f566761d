package ceph

import (
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// outside are the hosts of OSDs that a pool may use and that are in no bucket of a level, so that they get nothing of a pool that is spread over these. OSDs that
// are down or out are told, too: they come back.
func (p *planner) outside(x *poolPlan, level string) []string {
	use, hosts := Take{Root: poolRoot, Class: x.Spec.DeviceClass}, map[string]bool{}
	for id, at := range p.seen.PoolFacts.Places {
		if !use.Reaches(at) || at.Buckets[level] != "" || p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(id))] {
			continue
		}
		if host := at.Buckets["host"]; host != "" {
			hosts[host] = true
		} else {
			hosts[osdName(id)] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// wide says whether a failure domain is one that hosts are in, or are not.
func wide(domain string) bool { return domain != "osd" && domain != "host" }

// strands says which hosts a pool that is there would leave, with all its data, if it came to be spread as it is declared.
func (p *planner) strands(x *poolPlan) []string {
	if x.have == nil || !p.poolsKnown() || !wide(x.domain) || p.domainOf(x.have) == x.domain {
		return nil
	}
	return p.outside(x, x.domain)
}

// refuseStranded keeps a pool as it is spread: its data would all move onto the few that are in buckets of the new level.
func (p *planner) refuseStranded(x *poolPlan, hosts []string) {
	x.refuse(api.ReasonMisplaced, "failure domain not changed: the OSDs of %s are in no %s and would lose all its "+
		"data to the others; label these hosts ('holdfast host label %s --location %s=NAME') and move them ('holdfast "+
		"ceph shell -- ceph osd crush move %s root=%s %s=NAME')",
		words.Few(hosts), x.domain, p.hostIn(hosts[0]), x.domain, hosts[0], poolRoot, x.domain)
}

// hostIn is the Host whose OSDs are in a bucket of CRUSH; the bucket itself where none are.
func (p *planner) hostIn(bucket string) string {
	for _, o := range p.osds {
		if p.crushHost(o) == bucket {
			return o.host
		}
	}
	return bucket
}

// tellOutside tells of hosts whose OSDs get nothing of a pool.
func (p *planner) tellOutside(x *poolPlan) {
	if !p.poolsKnown() || !wide(x.domain) || len(x.refusals)+len(x.waits) > 0 {
		return
	}
	if hosts := p.outside(x, x.domain); len(hosts) > 0 {
		p.decide(api.VerdictSkip, api.ReasonMisplaced, x.line(), "OSDs of %s are in no %s and get no data of pool %s",
			words.Few(hosts), x.domain, x.Name)
	}
}
