package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/location"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// differences are where CRUSH has things otherwise than Holdfast knows of hosts.
type differences struct {
	astray  []string // hosts that are not where their labels say
	split   []string // hosts whose OSDs are in several buckets from which a pool chooses, and
	pools   []string // these pools
	shared  []string // buckets with OSDs of several hosts
	renamed []string // hosts whose OSDs are in a bucket of another name, and in no other one
	chosen  []string // OSDs in other places that somebody chose
}

// comparePlaces compares where CRUSH has OSDs with the hosts that they are on, and tells what
// differs.
func (p *planner) comparePlaces() {
	if !p.crushKnown() {
		return
	}
	m, x := &p.differ, p.crushed()
	for _, bucket := range slices.Sorted(maps.Keys(x.of)) {
		if len(x.of[bucket]) > 1 {
			m.shared = append(m.shared, bucket)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(x.settled)) {
		if pools := p.splitPools(host); len(pools) > 0 {
			m.split, m.pools = append(m.split, host), append(m.pools, pools...)
			continue
		}
		p.compareHost(host)
	}
	p.tellPlaces()
}

// compareHost notes the OSDs of a host that are in a bucket of another name.
func (p *planner) compareHost(host string) {
	m, x := &p.differ, p.crushed()
	home := p.crushHome(host)
	for _, bucket := range slices.Sorted(maps.Keys(x.settled[host])) {
		switch {
		case bucket == x.name(host) || slices.Contains(m.shared, bucket):
		case bucket == home:
			m.renamed = append(m.renamed, host)
		default:
			for _, o := range x.settled[host][bucket] {
				m.chosen = append(m.chosen, o.label()+" (host "+bucket+")")
			}
		}
	}
}

// splitPools are the pools that may keep copies together on a host, because CRUSH has its OSDs in
// several buckets.
func (p *planner) splitPools(host string) (names []string) {
	buckets := p.crushed().settled[host]
	if len(buckets) < 2 {
		return nil
	}
	for _, pool := range p.seen.Pools {
		if r, known := p.seen.Rules[pool.Rule]; known && p.parts(r, buckets) {
			names = append(names, pool.Name)
		}
	}
	return names
}

// parts says whether a rule may choose two OSDs of one host, as it takes them for ones of different
// hosts.
func (p *planner) parts(r Rule, buckets map[string][]*osd) bool {
	for _, t := range r.Takes {
		level := ""
		for _, s := range t.Steps {
			if s.Type != "osd" {
				level = s.Type
			}
		}
		domains := map[string]bool{}
		for _, osds := range buckets {
			for _, o := range osds {
				if at := p.crushPlaceOf(o); level != "" && t.Reaches(at) {
					domains[at.Buckets[level]] = true
				}
			}
		}
		if len(domains) > 1 {
			return true
		}
	}
	return false
}

// crushPlaceOf is where CRUSH has an OSD.
func (p *planner) crushPlaceOf(o *osd) Place {
	b := p.seen.Crush[o.label()]
	return Place{Class: b.Class, Buckets: b.In}
}

// tellPlaces tells what differs as decisions, and as the condition Placed of the StorageCluster,
// whose reason is the gravest.
func (p *planner) tellPlaces() {
	reason := api.PlacesAsDeclared
	var said []string
	for _, x := range []struct{ reason, text string }{
		{api.PlacesHostSplit, p.splitText()},
		{api.PlacesHostsShared, p.sharedText()},
		{api.PlacesElsewhere, p.astrayText()},
		{api.PlacesElsewhere, p.renamedText()},
		{api.PlacesElsewhere, p.chosenText()},
	} {
		if x.text == "" {
			continue
		}
		if reason == api.PlacesAsDeclared {
			reason = x.reason
		}
		said = append(said, x.text)
		p.decide(api.VerdictSkip, api.ReasonMisplaced, objectCrush, "%s", x.text)
	}
	c := metav1.Condition{Type: api.ClusterPlaced, Status: metav1.ConditionTrue, Reason: reason, Message: "CRUSH has each OSD below its host"}
	if len(said) > 0 {
		c.Status, c.Message = metav1.ConditionFalse, strings.Join(said, "; ")
	}
	p.plan.Conditions = append(p.plan.Conditions, c)
}

// shellMove is the command by which a person moves something in CRUSH.
func shellMove(name, to string) string {
	return fmt.Sprintf("'holdfast ceph shell -- ceph osd crush move %s %s'", name, to)
}

func (p *planner) splitText() string {
	if len(p.differ.split) == 0 {
		return ""
	}
	host := p.differ.split[0]
	x := p.crushed()
	var parts []string
	var other string
	for _, bucket := range slices.Sorted(maps.Keys(x.settled[host])) {
		parts = append(parts, fmt.Sprintf("%s in host %s", words.Few(labelsOf(x.settled[host][bucket])), bucket))
		if bucket != x.name(host) {
			other = x.settled[host][bucket][0].label()
		}
	}
	pools := slices.Compact(slices.Sorted(slices.Values(p.differ.pools)))
	return fmt.Sprintf("CRUSH has the OSDs of %s in several hosts, so copies of %s may share a machine. Of %s it has "+
		"%s. To move an OSD, with its data: %s",
		words.Few(p.differ.split), poolWords(pools), host, strings.Join(parts, ", "), shellMove(other,
			"root="+poolRoot+" host="+x.name(host)))
}

func (p *planner) sharedText() string {
	if len(p.differ.shared) == 0 {
		return ""
	}
	x, bucket := p.crushed(), p.differ.shared[0]
	hosts := slices.Sorted(maps.Keys(x.of[bucket]))
	example := hosts[0]
	for _, host := range hosts {
		if x.name(host) != bucket {
			example = host
		}
	}
	return fmt.Sprintf("CRUSH has the OSDs of hosts %s in one host, %s; moving an OSD moves its data. To move one: %s",
		words.Few(hosts), bucket, shellMove(x.of[bucket][example][0].label(), "root="+poolRoot+" host="+x.name(example)))
}

func (p *planner) astrayText() string {
	hosts := p.differ.astray
	if len(hosts) == 0 {
		return ""
	}
	return fmt.Sprintf("CRUSH locations differ from the labels: %s; Holdfast moves no host that has data. To move "+
		"one, which starts backfill: %s; or correct the labels", words.Few(hosts), shellMove(p.crushHome(hosts[0]),
		location.Text(location.Of(p.hosts[hosts[0]]))))
}

func (p *planner) renamedText() string {
	hosts := p.differ.renamed
	if len(hosts) == 0 {
		return ""
	}
	home := p.crushHome(hosts[0])
	return fmt.Sprintf("CRUSH has other names for %s: %s is %s there, also for its new OSDs. To rename the bucket, "+
		"which moves no data: 'holdfast ceph shell -- ceph osd crush rename-bucket %s %s'",
		words.Few(hosts), hosts[0], home, home,
		p.crushed().name(hosts[0]))
}

func (p *planner) chosenText() string {
	if len(p.differ.chosen) == 0 {
		return ""
	}
	return fmt.Sprintf("CRUSH has OSDs below other hosts than their own: %s; Holdfast does not move them",
		words.Few(p.differ.chosen))
}

func labelsOf(osds []*osd) (labels []string) {
	for _, o := range osds {
		labels = append(labels, o.label())
	}
	return labels
}

// judgePlaces tells of pools that may lose all copies with one machine.
func (p *planner) judgePlaces(s *state) {
	if text := p.splitText(); text != "" {
		s.because("%s", text)
	}
}

func poolWords(pools []string) string {
	if len(pools) == 1 {
		return "pool " + pools[0]
	}
	return "pools " + words.Few(pools)
}
