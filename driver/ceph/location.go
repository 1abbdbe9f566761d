package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/location"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// objectCrush is what decisions on where CRUSH has hosts are about. That of a host would be read as one about its mode.
const objectCrush = "crush"

// planLocations has hosts be in CRUSH where their labels say before anything is on them. One that holds data stays where it is: to move it
// moves the data, which nobody asked for (docs/decisions/2026-11-23-crush-locations.md).
func (p *planner) planLocations() {
	hosts := p.locatedHosts()
	if len(hosts) == 0 {
		return
	}
	var fresh []string
	for _, host := range hosts {
		b, there := p.hostBucket(host)
		switch {
		case p.reachable() && p.seen.Crush == nil, !p.reachable() && len(p.have) > 0: // only Ceph can tell
			p.unplaced[host] = true
		case there && location.Agrees(b, location.Of(p.hosts[host])):
		case there && !location.Free(b, location.Of(p.hosts[host])):
			p.differ.astray = append(p.differ.astray, host)
		case !there && p.settledElsewhere(host): // its OSDs are where somebody put them
		default:
			p.unplaced[host] = true
			fresh = append(fresh, host)
		}
	}
	if len(fresh) > 0 {
		p.findPlaces(fresh, p.atlas(hosts))
	}
}

// locatedHosts are the hosts that are labelled with where they are, and are to keep OSDs.
func (p *planner) locatedHosts() []string {
	found := map[string]bool{}
	for name, h := range p.hosts {
		if location.Located(h) && h.ModeOf() != api.HostDrain {
			found[name] = false
		}
	}
	for _, o := range p.osds {
		if has, is := found[o.host]; is && !has {
			found[o.host] = !o.leaving && !p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]
		}
	}
	maps.DeleteFunc(found, func(_ string, has bool) bool { return !has })
	return slices.Sorted(maps.Keys(found))
}

// labelledWith counts the buckets of a level that hosts with OSDs, or hosts that are to have some, are labelled with.
func (p *planner) labelledWith(level string) int {
	names := map[string]bool{}
	for _, o := range p.osds {
		names[p.location(o.host, location.Labels[level])] = true
	}
	for _, n := range p.nodes {
		if n.toCome > 0 {
			names[p.location(n.hostName(), location.Labels[level])] = true
		}
	}
	delete(names, "")
	return len(names)
}

// hostBucket is the bucket of a host in CRUSH.
func (p *planner) hostBucket(host string) (b Bucket, there bool) {
	if p.reachable() {
		b, there = p.seen.Crush[p.crushHome(host)]
	}
	return b, there && b.Type == "host"
}

// settledElsewhere says whether all OSDs of a host have their places in CRUSH, in none of which another one would come.
func (p *planner) settledElsewhere(host string) bool {
	return !slices.ContainsFunc(p.osds, func(o *osd) bool {
		_, placed := p.crushPlacement(o)
		return o.host == host && !o.leaving && !placed
	})
}

// atlas is what the labels of hosts say of the buckets of CRUSH.
func (p *planner) atlas(hosts []string) *location.Atlas {
	var crush map[string]Bucket
	if p.reachable() {
		crush = p.seen.Crush
	}
	var all []*api.Host
	for _, host := range hosts {
		all = append(all, p.hosts[host])
	}
	return location.NewAtlas(all, p.crushHome, crush)
}

// findPlaces finds where hosts are to be that nothing is on, and refuses what cannot be so.
func (p *planner) findPlaces(hosts []string, atlas *location.Atlas) {
	wrong := map[engine.Objection][]string{}
	for _, host := range hosts {
		in, why := atlas.Locate(p.hosts[host])
		if !why.None() {
			wrong[why], p.nowhere[host] = append(wrong[why], host), true
			continue
		}
		p.located[p.crushHome(host)] = location.Text(in)
		p.nowhere[host] = p.moveFailed(host)
	}
	byMessage := func(a, b engine.Objection) int { return strings.Compare(a.Message, b.Message) }
	for _, why := range slices.SortedFunc(maps.Keys(wrong), byMessage) {
		p.decide(why.Verdict, why.Reason, objectCrush, "%s; until then no new OSD starts on %s", why.Message,
			words.Few(wrong[why]))
	}
}

// moveFailed says whether Ceph would not put a host where it is to be, as where CRUSH has no such level. No pool waits for its OSDs.
func (p *planner) moveFailed(host string) bool {
	bucket := p.crushHome(host)
	return slices.ContainsFunc(p.view.Failures, func(f engine.CommandFailure) bool {
		return f.Command.Line == objectCrush && f.Command.Params[bucket] == p.located[bucket]
	})
}

// writeLocations has the hosts be put where they are to be.
func (p *planner) writeLocations() {
	if len(p.located) > 0 {
		names := slices.Sorted(maps.Keys(p.located))
		p.command(api.ReasonDeclared, verbCrushMove, strings.Join(names, ", "), p.located, "labels changed, no data yet")
		p.plan.Commands[len(p.plan.Commands)-1].Line = objectCrush
	}
}
