package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// objectCrush is what decisions on where CRUSH has hosts are about. That of a host would be read as one about its mode.
const objectCrush = "crush"

// levels are the types of CRUSH's buckets that hosts can be labelled with, the smallest first; levelLabels are their labels.
var levels, levelLabels = levelsOf(api.LocationLabels())

func levelsOf(labels []string) (levels []string, byLevel map[string]string) {
	byLevel = map[string]string{}
	for _, label := range labels {
		_, level, _ := strings.Cut(label, "/")
		levels, byLevel[level] = append(levels, level), label
	}
	return levels, byLevel
}

// toRoot are the levels and then the root, which is no label's.
var toRoot = append(slices.Clone(levels), "root")

// above are those of them that are larger than one.
func above(level string) []string { return toRoot[slices.Index(toRoot, level)+1:] }

// located says whether a host is labelled with where it is.
func located(h *api.Host) bool {
	return slices.ContainsFunc(levels, func(level string) bool { return h.Labels[levelLabels[level]] != "" })
}

// locationOf is where a host is by its labels: names of buckets by their levels.
func locationOf(h *api.Host) map[string]string {
	in := map[string]string{}
	for _, level := range levels {
		if name := h.Labels[levelLabels[level]]; name != "" {
			in[level] = name
		}
	}
	return in
}

// locationText is a location as Ceph's commands want it, the largest bucket first.
func locationText(in map[string]string) string {
	text := "root=" + poolRoot
	for _, level := range slices.Backward(levels) {
		if in[level] != "" {
			text += " " + level + "=" + in[level]
		}
	}
	return text
}

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
		case there && agrees(b, locationOf(p.hosts[host])):
		case there && !free(b, locationOf(p.hosts[host])):
			p.differ.astray = append(p.differ.astray, host)
		case !there && p.settledElsewhere(host): // its OSDs are where somebody put them
		default:
			p.unplaced[host] = true
			fresh = append(fresh, host)
		}
	}
	if len(fresh) > 0 {
		p.findPlaces(fresh, p.newAtlas(hosts))
	}
}

// locatedHosts are the hosts that are labelled with where they are, and are to keep OSDs.
func (p *planner) locatedHosts() []string {
	found := map[string]bool{}
	for name, h := range p.hosts {
		if located(h) && h.ModeOf() != api.HostDrain {
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
		names[p.location(o.host, levelLabels[level])] = true
	}
	for _, n := range p.nodes {
		if n.toCome > 0 {
			names[p.location(n.hostName(), levelLabels[level])] = true
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

// agrees says whether a bucket is in all that a location names. What else it is in is somebody else's affair.
func agrees(b Bucket, in map[string]string) bool {
	for level, name := range in {
		if b.In[level] != name {
			return false
		}
	}
	return true
}

// free says whether a host may be moved: it holds no data, and nobody has put it where the labels say nothing of.
func free(b Bucket, in map[string]string) bool {
	for level, name := range b.In {
		if in[level] == "" && (level != "root" || name != poolRoot) {
			return false
		}
	}
	return b.Weight == 0
}

// findPlaces finds where hosts are to be that nothing is on, and refuses what cannot be so.
func (p *planner) findPlaces(hosts []string, atlas *atlas) {
	wrong := map[engine.Objection][]string{}
	for _, host := range hosts {
		in, why := atlas.locate(p.hosts[host])
		if !why.None() {
			wrong[why], p.nowhere[host] = append(wrong[why], host), true
			continue
		}
		p.located[p.crushHome(host)] = locationText(in)
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
