package gluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// spare is how many bricks a set can do without, and so how many of them one zone may have for the loss of the zone to take nothing
// away. Single bricks can do without none, and lie in some zone all the same: 0 is no bound.
func (l layout) spare() int {
	if l.setSize() == 1 {
		return 0
	}
	return l.setSize() - neededOf(l)
}

func (p *planner) strict() bool {
	g := p.cluster.Spec.GlusterFS
	return g != nil && g.Zones == api.ZonesStrict
}

// perZone bounds how many bricks of a set may be put into one zone; 0 is no bound.
func (p *planner) perZone(l layout) int {
	if !p.strict() {
		return 0
	}
	return l.spare()
}

// zonesMissing says that the nodes that can be used lie in too few zones for a volume under Strict; nothing when they do not.
func (p *planner) zonesMissing(l layout) string {
	most := p.perZone(l)
	if most == 0 {
		return ""
	}
	byZone, room := map[int32]map[string]bool{}, 0
	for _, s := range p.openStores() {
		if byZone[s.Zone] == nil {
			byZone[s.Zone] = map[string]bool{}
		}
		byZone[s.Zone][s.Node] = true
	}
	var have []string
	for _, zone := range slices.Sorted(maps.Keys(byZone)) {
		room += min(most, len(byZone[zone]))
		have = append(have, fmt.Sprintf("%d: %s", zone, words.Few(slices.Sorted(maps.Keys(byZone[zone])))))
	}
	if room >= l.setSize() {
		return ""
	}
	return fmt.Sprintf("%s may have %s of a set in one zone (spec.glusterfs.zones is Strict), but the usable nodes "+
		"are in %s (%s): declare nodes in other zones, or set spec.glusterfs.zones of the StorageCluster to Preferred",
		l, words.Plural(most, "brick"), words.Plural(len(have), "zone"), strings.Join(have, "; "))
}

// zonesTaken says that a brick that has to move could move, were it not for Strict.
func (p *planner) zonesTaken(m *mover) string {
	if !p.strict() {
		return ""
	}
	if _, ok := p.beside(m, 0); !ok {
		return ""
	}
	return "all other places are in zones that already have bricks of its set, but spec.glusterfs.zones is Strict: " +
		"declare a node in another zone, or set spec.glusterfs.zones to Preferred"
}

// sharedZone says of the places of a volume's bricks, in its status, that one zone has more of a set than the set can do without.
func (p *planner) sharedZone(v *volume, l layout) string {
	spare := l.spare()
	for set := range slices.Chunk(v.status.Bricks, l.setSize()) {
		nodes := map[int32][]string{}
		for _, b := range set {
			if n := p.nodeNamed(b.Node); n != nil && n.Node != nil { // of one that is not declared any more nobody knows the zone
				nodes[n.zone] = append(nodes[n.zone], n.name)
			}
		}
		for _, zone := range slices.Sorted(maps.Keys(nodes)) {
			if there := nodes[zone]; spare > 0 && len(there) > spare {
				return fmt.Sprintf("%d of the %d bricks of a set are in zone %d (%s), but the set tolerates the loss of %d: "+
					"the loss of that zone would lose data", len(there), len(set), zone, words.Few(there), spare)
			}
		}
	}
	return ""
}

// judgeZones warns where the loss of one zone would take data away. Where all nodes lie in one zone nobody uses zones, and only the
// condition says so.
func (p *planner) judgeZones(v *volume) {
	text := p.sharedZone(v, layoutOfPool(v.pool))
	c := metav1.Condition{Type: api.VolumeZonesApart, Status: metav1.ConditionTrue, Reason: api.ReasonZonesApart}
	switch {
	case text != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, api.ReasonZonesShared, text
	case meta.FindStatusCondition(v.status.Conditions, c.Type) == nil:
		return
	}
	p.setCondition(v, c)
	if p.strict() || p.zones() > 1 {
		v.zones = text
	}
}

// zones is how many zones the declared nodes lie in.
func (p *planner) zones() int {
	found := map[int32]bool{}
	for _, n := range p.nodes {
		if n.Node != nil {
			found[n.zone] = true
		}
	}
	return len(found)
}
