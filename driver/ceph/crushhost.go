package ceph

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The options that say where an OSD puts itself in CRUSH when it starts.
const (
	optionLocation      = "crush_location"
	optionLocationHook  = "crush_location_hook"
	optionUpdateOnStart = "osd_crush_update_on_start"
)

// placeOptions are all of them.
var placeOptions = []string{optionLocation, optionLocationHook, optionUpdateOnStart}

// crushNames are the names that CRUSH is to have hosts by: the short name of each; where two hosts
// share that, the full one.
func crushNames(hosts map[string]bool) map[string]string {
	names, owners := map[string]string{}, map[string]int{}
	for host := range hosts {
		owners[shortName(host)]++
	}
	for host := range hosts {
		names[host] = host
		if short := shortName(host); owners[short] == 1 {
			names[host] = short
		}
	}
	return names
}

// shortName is a host's name up to the first dot, as Ceph itself calls hosts.
func shortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// crushHostOf is the bucket of CRUSH that the OSD of a Daemon is in, or puts itself into when it
// starts.
func crushHostOf(d *api.Daemon) string {
	return cmp.Or(d.Spec.Parameters[ParamCrushHost], shortName(d.Spec.Host))
}

// crushHosts is where CRUSH has the OSDs of the hosts.
type crushHosts struct {
	osds  int               // how many of them the plan had when it was made
	names map[string]string // what CRUSH is to call hosts
	// settled are the OSDs that are where they are to stay, by their hosts and by CRUSH's; of is
	// the same the other way round.
	settled, of map[string]map[string][]*osd
}

// ownHosts are the hosts that have nodes or OSDs of the cluster. What others are called does not matter to it.
func (p *planner) ownHosts() map[string]bool {
	hosts := map[string]bool{}
	for _, n := range p.nodes {
		if n.Host != nil {
			hosts[n.Host.Name] = true
		}
	}
	for _, o := range p.osds {
		hosts[o.host] = true
	}
	return hosts
}

// crushed is the index of the OSDs that the plan has so far.
func (p *planner) crushed() *crushHosts {
	if p.crushIndex != nil && p.crushIndex.osds == len(p.osds) {
		return p.crushIndex
	}
	x := &crushHosts{osds: len(p.osds), names: crushNames(p.ownHosts()), settled: map[string]map[string][]*osd{}, of: map[string]map[string][]*osd{}}
	p.crushIndex = x
	var fresh []*osd
	for _, o := range p.osds {
		switch bucket := p.crushHost(o); {
		case bucket == "" || o.leaving:
		case p.settledIn(o, bucket):
			x.add(o, bucket)
		default:
			fresh = append(fresh, o)
		}
	}
	for _, o := range fresh {
		if bucket := p.crushHost(o); !x.anothers(bucket, o.host) && x.joins(o.host, bucket) {
			x.add(o, bucket)
		}
	}
	return x
}

func (x *crushHosts) add(o *osd, bucket string) {
	for _, to := range []struct {
		all       map[string]map[string][]*osd
		key, name string
	}{{x.settled, o.host, bucket}, {x.of, bucket, o.host}} {
		if to.all[to.key] == nil {
			to.all[to.key] = map[string][]*osd{}
		}
		to.all[to.key][to.name] = append(to.all[to.key][to.name], o)
	}
}

// name is what CRUSH is to call a host.
func (x *crushHosts) name(host string) string { return cmp.Or(x.names[host], shortName(host)) }

// anothers says whether a bucket is that of another host, by its name or by what is in it.
func (x *crushHosts) anothers(bucket, host string) bool {
	for other, name := range x.names {
		if name == bucket && other != host {
			return true
		}
	}
	return x.shared(bucket, host)
}

// joins says whether an OSD of a host may stay in a bucket: its others are there, or it has none. Disks that were carried to a host
// leave the bucket of the host that they came from, also when nothing is left of that.
func (x *crushHosts) joins(host, bucket string) bool {
	buckets := x.settled[host]
	return len(buckets) == 0 || len(buckets[bucket]) > 0
}

// shared says whether a bucket has OSDs of another host.
func (x *crushHosts) shared(bucket, host string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(x.of[bucket])), func(other string) bool { return other != host })
}

// settledIn says whether an OSD that runs, or ran, stays in the bucket that CRUSH has it in: it was
// seen to be placed, or came there by itself as it was told, or an earlier version of Holdfast
// started it, which told it nothing.
func (p *planner) settledIn(o *osd, bucket string) bool {
	have := p.osdHave(o)
	if have == nil {
		return false
	}
	told := have.Spec.Parameters[ParamCrushHost]
	return have.Spec.Parameters[ParamCrushPlaced] != "" || told == "" || told == bucket
}

// crushHome is the bucket of CRUSH that new OSDs of a host come into: that of its others, as long
// as it is theirs alone and where Holdfast puts hosts; else that of the host's name.
func (p *planner) crushHome(host string) string {
	x := p.crushed()
	buckets := x.settled[host]
	for bucket := range buckets {
		if len(buckets) == 1 && p.seen.Crush[bucket].In["root"] == poolRoot && !x.shared(bucket, host) {
			return bucket
		}
	}
	return x.name(host)
}

// crushOwns says whether a bucket is a host's own: new OSDs of it come there, or it has OSDs there
// and no other host has.
func (p *planner) crushOwns(host, bucket string) bool {
	x := p.crushed()
	return bucket == p.crushHome(host) || len(x.settled[host][bucket]) > 0 && !x.shared(bucket, host)
}

// crushKnown says whether it is known where CRUSH has OSDs.
func (p *planner) crushKnown() bool { return p.reachable() && p.seen.Crush != nil }

// crushPlacement is the bucket of a host that an OSD is in, or comes into when it starts; and
// whether it is placed already, so that it stays wherever CRUSH has it. While Ceph does not tell,
// or does not have the OSD, it is as it was.
func (p *planner) crushPlacement(o *osd) (bucket string, placed bool) {
	have := p.osdHave(o)
	switch in, there := p.crushSpot(o); {
	case o.adopted:
		return o.bucket, true
	case have != nil && (!p.crushKnown() || !p.inMap(o)):
		return have.Spec.Parameters[ParamCrushHost], have.Spec.Parameters[ParamCrushPlaced] != ""
	case there && in == "":
		return "", true
	case there && (p.settledIn(o, in) || slices.Contains(p.crushed().settled[o.host][in], o)):
		return in, true
	}
	return p.crushHome(o.host), false
}

// crushSpot is the bucket of a host that CRUSH has an OSD in, which is empty where that is in none;
// and whether CRUSH has it at all.
func (p *planner) crushSpot(o *osd) (bucket string, there bool) {
	if !p.inMap(o) {
		return "", false
	}
	b, there := p.seen.Crush[o.label()]
	return b.In["host"], there
}

// crushHost is the bucket of a host that CRUSH has an OSD in; empty where it has the OSD in none.
func (p *planner) crushHost(o *osd) string {
	bucket, _ := p.crushSpot(o)
	return bucket
}

// refusePlaces refuses one place in CRUSH for all OSDs, as an adoption by an earlier version of
// Holdfast took it from the ceph.conf of one host.
func (p *planner) refusePlaces() {
	for _, section := range []string{"global", "osd"} {
		where, declared := p.options[section][optionLocation]
		if !declared {
			continue
		}
		delete(p.options[section], optionLocation)
		p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "config",
			"spec.ceph.config.%s: %s = %q would put the OSDs of all hosts at one CRUSH location, so Holdfast ignores it; "+
				"remove it and label the hosts ('holdfast host label --location'), or set it for single OSDs "+
				"(spec.ceph.config.osd.N)", section,
			optionLocation, where)
	}
}
