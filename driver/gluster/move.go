package gluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/place"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// mover is a brick that has to leave its place, or to be filled again where it is.
type mover struct {
	v      *volume
	set    []glusterd.Brick
	i      int // its number within the set
	number int // its number within the volume
	why    string
	object string // whom to tell: the node, or its host
	refill bool   // its directory was lost, and its store is well
}

func (m *mover) brick() *glusterd.Brick { return &m.set[m.i] }

// moveBricks moves bricks out of stores that are to be emptied, and fills those again whose directory was lost. Of each volume
// one brick at a time: those that do not serve anyway come first.
func (p *planner) moveBricks() {
	for _, v := range p.volumes {
		if v.pool == nil || v.declared != nil && v.declared.DeletionTimestamp != nil || p.changes(v) {
			continue
		}
		movers := p.movers(v)
		switch {
		case v.pool.SetSize() == 1 && (len(movers) > 0 || draining(v.pool)):
			p.drainSingles(v, movers)
		case v.pool.SetSize() > 1:
			for _, m := range movers {
				if p.move(m) {
					break
				}
			}
		}
	}
}

// movers are the bricks of a volume that have to move.
func (p *planner) movers(v *volume) []*mover {
	var movers []*mover
	number, soon := 0, v.declared != nil && p.noteLost(v) > 0
	for _, set := range v.pool.Sets() {
		for i := range set {
			if m := p.mover(v, set, i, soon); m != nil {
				m.number = number
				movers = append(movers, m)
			}
			number++
		}
	}
	slices.SortStableFunc(movers, func(a, b *mover) int { return dead(a.brick()) - dead(b.brick()) })
	return movers
}

func dead(b *glusterd.Brick) int {
	if b.State == glusterd.BrickOnline {
		return 1
	}
	return 0
}

// mover says whether a brick has to move, and why; soon says that directories which are gone may be seen again.
func (p *planner) mover(v *volume, set []glusterd.Brick, i int, soon bool) *mover {
	b := &set[i]
	n, s := p.nodeOf(b), p.storeOf(b)
	m := &mover{v: v, set: set, i: i}
	switch {
	case n == nil:
		return nil
	case n.leaving != "":
		m.why = n.leaving
	case s != nil && s.leaving != "":
		m.why = s.leaving
	case s == nil && n.running() && p.takenAway(v, n, b) != "":
		m.why = p.takenAway(v, n, b)
	case !soon && p.isLost(v, b):
		m.why, m.refill = "its directory is missing from a healthy store", true
	default:
		return nil
	}
	m.object = p.leaverObject(n)
	return m
}

// takenAway says that what a brick lay on was taken from its node, and is not there any more.
func (p *planner) takenAway(v *volume, n *node, b *glusterd.Brick) string {
	if was := v.recorded(n.name, b.Path); was != nil {
		return n.undeclared(was.Device, was.Directory)
	}
	return ""
}

// move replaces one brick of a set, if the set can do without it meanwhile. It says whether something was done, or is under way
// that all other bricks of the volume wait for.
func (p *planner) move(m *mover) bool {
	b, v := m.brick(), m.v
	if v.pool.State != glusterd.VolumeStarted {
		next := ""
		if v.declared == nil {
			next = fmt.Sprintf(": it was kept when its Volume was deleted; declare Volume %s again, which starts "+
				"it, or end it with 'gluster volume delete %s'",
				v.name, v.name)
		}
		p.decide(api.VerdictWait, api.ReasonNotReady, m.object,
			"%s: brick %s of volume %s is moved when the volume is started%s", m.why, b.Path, v.name, next)
		return false
	}
	if t := v.pool.Task; t != nil && t.State == glusterd.TaskInProgress {
		p.decide(api.VerdictWait, api.ReasonTaskInProgress, m.object,
			"%s: brick %s of volume %s is moved after the running %s", m.why, b.Path, v.name, strings.ToLower(t.Kind))
		return true
	}
	spot, ok := p.replacement(m)
	if !ok {
		p.refuseMove(m)
		return false
	}
	if against := sets.Without(v.pool, m.set, m.i, p.away); !against.None() {
		p.decide(against.Verdict, against.Reason, m.object, "%s: brick %s of volume %s cannot be moved now: %s", m.why, b.Path, v.name, against.Message)
		return false
	}
	if why := sets.Unsound(v.pool); why != "" && b.State == glusterd.BrickOnline {
		p.decide(api.VerdictWait, api.ReasonNotReady, m.object, "%s: brick %s of volume %s is moved when all of the "+
			"volume is healthy: %s", m.why, b.Path, v.name, why)
		return true
	}
	p.replace(m, spot)
	return true
}

// away says whether the node of a brick is told to stop.
func (p *planner) away(b *glusterd.Brick) bool {
	n := p.nodeOf(b)
	return n != nil && (p.stopped[n.name] || n.daemon.Spec.State == api.WantStopped)
}

// replacement is where a brick can go: not on a node that has another brick of its set, and in a zone that has none if there is
// one.
func (p *planner) replacement(m *mover) (place.Spot, bool) {
	if m.refill {
		return place.Spot{}, true
	}
	return p.beside(m, p.perZone(layoutOfPool(m.v.pool)))
}

// beside is a place for a brick beside the others of its set, of which one zone may have perZone at most.
func (p *planner) beside(m *mover, perZone int) (place.Spot, bool) {
	var others []place.Spot
	for i := range m.set {
		if n := p.nodeOf(&m.set[i]); n != nil && i != m.i {
			others = append(others, place.Spot{Node: n.name, Zone: n.zone})
		}
	}
	return place.Beside(p.openStores(), others, max(1, m.v.brickSizes()(m.number)), perZone)
}

// refuseMove says that there is no place for a brick, and what of what is declared may still become one.
func (p *planner) refuseMove(m *mover) {
	if place := p.comingPlace(); place != "" {
		p.decide(api.VerdictWait, api.ReasonDependencyNotReady, m.object, "%s: where brick %s of volume %s goes is decided when %s can be used", m.why, m.brick().Path, m.v.name, place)
		return
	}
	if why := p.zonesTaken(m); why != "" {
		p.decide(api.VerdictRefuse, api.ReasonInsufficientNodes, m.object, "%s, but no place for brick %s of volume %s: %s",
			m.why, m.brick().Path, m.v.name, why)
		return
	}
	size := resource.NewQuantity(m.v.brickSizes()(m.number), resource.BinarySI)
	p.decide(api.VerdictRefuse, api.ReasonInsufficientSpace, m.object, "%s, and brick %s of volume %s (%s, %s) has nowhere to go: no other node without a brick of the same set has room for it. "+
		"Add a StorageNode or a device, or undo the removal%s", m.why, m.brick().Path, m.v.name,
		layoutOfPool(m.v.pool), size, closedPlaces(p))
}

// replace has a brick replaced, or filled again where it is; the set heals it then.
func (p *planner) replace(m *mover, spot place.Spot) {
	b, v := m.brick(), m.v
	if m.refill {
		params := map[string]string{glusterd.ParamOld: b.Name()}
		if p.storeOf(b).Root {
			params[glusterd.ParamForce] = "true"
		}
		p.command(glusterd.VerbResetBrick, v.name, params, api.RiskRedundancy, "%s: refilling brick %s from its set", m.why, b.Name())
		return
	}
	rest := v.status.Bricks
	v.status.Bricks = slices.Clone(rest)
	names, _ := p.take(v, []place.Spot{spot})
	if last := len(v.status.Bricks) - 1; v.declared != nil && m.number < len(rest) {
		v.status.Bricks[m.number] = v.status.Bricks[last]
		v.status.Bricks = v.status.Bricks[:last]
	}
	p.command(glusterd.VerbReplace, v.name, map[string]string{glusterd.ParamOld: b.Name(), glusterd.ParamNew: names[0]}, api.RiskRedundancy,
		"%s: brick %s moves to %s, and is filled from the others of its set", m.why, b.Name(), names[0])
}
