package gluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/closed"
	"github.com/holdfast-storage/holdfast/driver/gluster/place"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// layout is how a volume keeps data: in sets of whole copies, of copies and a witness, of fragments, or of single bricks.
type layout struct {
	replica, arbiter     int // replica counts arbiters, as glusterd does; 1 for single bricks
	disperse, redundancy int
}

// layoutOf is what is declared. Without a word on durability it is three copies: the least that survives a node and cannot
// disagree.
func layoutOf(spec *api.VolumeSpec) layout {
	d := spec.Durability
	switch {
	case d == nil:
		return layout{replica: 3}
	case d.Arbiter != nil:
		return layout{replica: 3, arbiter: 1}
	case d.Disperse != nil:
		return layout{replica: 1, disperse: int(d.Disperse.Data + d.Disperse.Redundancy), redundancy: int(d.Disperse.Redundancy)}
	case d.Replicate != nil:
		return layout{replica: max(3, int(d.Replicate.Count))}
	}
	return layout{replica: 1}
}

func layoutOfPool(v *glusterd.Volume) layout {
	return layout{replica: max(1, v.Replica), arbiter: v.Arbiter, disperse: v.Disperse, redundancy: v.Redundancy}
}

func (l layout) setSize() int { return max(l.replica, l.disperse) }

// arbiterShare is how much smaller than a copy a witness may be: it has names and attributes alone, 4 KiB for a file, which is
// enough where files are of 64 KiB on average.
const arbiterShare = 16

// members are the sizes of the bricks of each set of a volume.
func (l layout) members(capacity int64, sets int) []int64 {
	perSet := (capacity + int64(sets) - 1) / int64(sets)
	if l.disperse > 0 {
		data := int64(l.disperse - l.redundancy)
		return slices.Repeat([]int64{(perSet + data - 1) / data}, l.disperse)
	}
	sizes := slices.Repeat([]int64{perSet}, l.replica)
	for i := range l.arbiter {
		sizes[len(sizes)-1-i] = (perSet + arbiterShare - 1) / arbiterShare
	}
	return sizes
}

// params are those of VerbCreate. The program counts an arbiter beside the copies.
func (l layout) params() map[string]string {
	params := map[string]string{}
	switch {
	case l.disperse > 0:
		params[glusterd.ParamDisperse], params[glusterd.ParamRedundancy] = itoa(l.disperse), itoa(l.redundancy)
	case l.arbiter > 0:
		params[glusterd.ParamReplica], params[glusterd.ParamArbiter] = itoa(l.replica-l.arbiter), itoa(l.arbiter)
	case l.replica > 1:
		params[glusterd.ParamReplica] = itoa(l.replica)
	}
	return params
}

// text writes a layout as GlusterFS does.
func (l layout) text(sets int) string {
	switch {
	case l.disperse > 0:
		return fmt.Sprintf("%d x (%d + %d)", sets, l.disperse-l.redundancy, l.redundancy)
	case l.arbiter > 0:
		return fmt.Sprintf("%d x (%d + %d)", sets, l.replica-l.arbiter, l.arbiter)
	case l.replica > 1:
		return fmt.Sprintf("%d x %d", sets, l.replica)
	}
	return itoa(sets)
}

func (l layout) String() string {
	switch {
	case l.disperse > 0:
		return fmt.Sprintf("disperse %d + %d", l.disperse-l.redundancy, l.redundancy)
	case l.arbiter > 0:
		return "replica 2 with an arbiter"
	case l.replica > 1:
		return fmt.Sprintf("replica %d", l.replica)
	}
	return "distribute"
}

// maxSets bounds how many sets a volume is made of at once. A volume that does not fit into so many does not fit.
const maxSets = 64

// room is how much may still be promised in a store. A twentieth stays free: bricks that are full to the last byte fail their own
// health check, and go down all together while their processes live on.
func (s *store) room() int64 {
	return max(0, min(s.Size/20*19-s.promised, s.Free))
}

// open says whether new bricks may be put into a store.
func (p *planner) open(s *store) bool {
	n := s.node
	return s.leaving == "" && !s.closed && s.Problem == "" && s.Path != "" && n.running() && p.reached(n) &&
		!p.stopped[n.name] &&
		p.hosts[n.hostName()].ModeOf() == api.HostActive && len(n.problems) == 0
}

// openStores are the stores that new bricks may be put into.
func (p *planner) openStores() []place.Store {
	var stores []place.Store
	for _, n := range p.nodes {
		for _, s := range n.stores {
			if p.open(s) {
				stores = append(stores, place.Store{Node: n.name, Zone: n.zone, Name: s.Name, Size: s.Size, Room: s.room(), Bricks: s.bricks})
			}
		}
	}
	return stores
}

// spots chooses places for sets of bricks of these sizes; nil where there is no room for all.
func (p *planner) spots(l layout, members []int64, sets int) []place.Spot {
	found := place.Sets(p.openStores(), members, sets, p.perZone(l))
	if len(found) < sets {
		return nil
	}
	return slices.Concat(found...)
}

// take promises places to a volume and writes them into its status; it returns them as address:path.
func (p *planner) take(v *volume, spots []place.Spot) (names []string, force bool) {
	for _, spot := range spots {
		n := p.nodeNamed(spot.Node)
		s := n.stores[slices.IndexFunc(n.stores, func(s *store) bool { return s.Name == spot.Store })]
		s.promised += spot.Size
		s.bricks++
		b := api.VolumeBrick{
			Node: n.name, Device: s.Device, Path: p.freePath(v, s), Size: resource.NewQuantity(spot.Size, resource.BinarySI),
		}
		if s.Device == "" {
			b.Directory = s.Name
		}
		v.status.Bricks = append(v.status.Bricks, b)
		names, force = append(names, n.address+":"+b.Path), force || s.Root
	}
	return names, force
}

// freePath is the path of a new brick: <store>/<volume>.<number>, with the first number that nothing there has.
func (p *planner) freePath(v *volume, s *store) string {
	for i := 1; ; i++ {
		path := fmt.Sprintf("%s/%s.%d", s.Path, v.name, i)
		planned := slices.ContainsFunc(v.status.Bricks, func(b api.VolumeBrick) bool { return b.Node == s.node.name && b.Path == path })
		used := v.pool != nil && slices.ContainsFunc(v.pool.Bricks, func(b glusterd.Brick) bool { return p.nodeOf(&b) == s.node && b.Path == path })
		if !planned && !used && s.lost(path) {
			return path
		}
	}
}

// noPlace says why there is no place for a volume.
func (p *planner) noPlace(want layout, size int64) string {
	nodes, least := p.nodesOpen(), want.setSize()
	if len(nodes) < least {
		return fmt.Sprintf("%s needs %s with devices or directories, because no two bricks of a set share a node, and %s can be used: %s",
			want, words.Plural(least, "node"), itoa(len(nodes)), words.Few(append(nodes,
				"declare more StorageNodes, or choose another durability"+closedPlaces(p))))
	}
	if why := p.zonesMissing(want); why != "" {
		return why
	}
	largest := int64(0)
	for _, s := range p.openStores() {
		largest = max(largest, s.Room>>20<<20) // whole MiB: 3830Mi says more than 4016465499
	}
	return fmt.Sprintf("there is no room for %s as %s on %s: the emptiest place has %s left to promise. Add "+
		"devices or nodes, or declare less%s",
		resource.NewQuantity(size, resource.BinarySI), want, words.Plural(len(nodes), "node"),
		resource.NewQuantity(largest, resource.BinarySI), closedPlaces(p))
}

// closedPlaces names nodes with places that take no new bricks, as the rest of a sentence on what
// can be done.
func closedPlaces(p *planner) string {
	var nodes []string
	for _, n := range p.nodes {
		if closed.Text(n.ResolvedNode) != "" {
			nodes = append(nodes, n.name)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	return ", or open what spec.glusterfs.closed closes on " + words.Few(nodes)
}

// nodesOpen are the names of the nodes that new bricks may be put on.
func (p *planner) nodesOpen() []string {
	names := map[string]bool{}
	for _, s := range p.openStores() {
		names[s.Node] = true
	}
	return slices.Sorted(maps.Keys(names))
}
