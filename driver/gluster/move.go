package gluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/place"
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
	case !soon && p.isLost(v, b):
		m.why, m.refill = "its directory is gone and its store is well", true
	default:
		return nil
	}
	m.object = p.leaverObject(n)
	return m
}

// isLost says whether a brick does not serve because its directory is gone from a store that is well.
func (p *planner) isLost(v *volume, b *glusterd.Brick) bool {
	n, s := p.nodeOf(b), p.storeOf(b)
	return v.declared != nil && v.pool.State == glusterd.VolumeStarted && b.State == glusterd.BrickOffline && s != nil && n.running() && s.lost(b.Path)
}

// bricksLost is the condition of a Volume that says since when the directories of the bricks in its message are gone.
const bricksLost = "BricksLost"

// lostFor is how long a directory has to be gone before it is taken for lost. The node that it is on tells of what is in its
// stores later than the speaker tells of a brick that was only just made, and takes some seconds to serve.
const lostFor = 30 * time.Second

// noteLost notes since when which directories are gone, and says how long they still may be before they are taken for lost.
func (p *planner) noteLost(v *volume) (left time.Duration) {
	var lost []string
	for i := range v.pool.Bricks {
		if p.isLost(v, &v.pool.Bricks[i]) {
			lost = append(lost, v.pool.Bricks[i].Name())
		}
	}
	text := joinFew(lost)
	if c := meta.FindStatusCondition(v.status.Conditions, bricksLost); c == nil || c.Message != text {
		meta.RemoveStatusCondition(&v.status.Conditions, bricksLost)
	}
	if len(lost) == 0 {
		return 0
	}
	p.setCondition(v, metav1.Condition{Type: bricksLost, Status: metav1.ConditionTrue, Reason: "DirectoryGone", Message: text})
	if left = meta.FindStatusCondition(v.status.Conditions, bricksLost).LastTransitionTime.Add(lostFor).Sub(p.now); left > 0 {
		p.recheck(left)
		p.decide(api.VerdictWait, v.object(), "gone from stores that are well: %s. A moment is left for them to be seen again", text)
	}
	return left
}

// move replaces one brick of a set, if the set can do without it meanwhile. It says whether something was done, or is under way
// that all other bricks of the volume wait for.
func (p *planner) move(m *mover) bool {
	b, v := m.brick(), m.v
	if v.pool.State != glusterd.VolumeStarted {
		p.decide(api.VerdictWait, m.object, "%s: brick %s of volume %s is moved when the volume is started", m.why, b.Path, v.name)
		return false
	}
	if t := v.pool.Task; t != nil && t.State == glusterd.TaskInProgress {
		p.decide(api.VerdictWait, m.object, "%s: brick %s of volume %s is moved when the %s that goes on has ended", m.why, b.Path, v.name, strings.ToLower(t.Kind))
		return true
	}
	spot, ok := p.replacement(m)
	if !ok {
		p.refuseMove(m)
		return false
	}
	if why, passes := without(v.pool, m.set, m.i, p.away); why != "" {
		verdict := map[bool]api.Verdict{true: api.VerdictWait, false: api.VerdictRefuse}[passes]
		p.decide(verdict, m.object, "%s: brick %s of volume %s cannot be moved now: %s", m.why, b.Path, v.name, why)
		return false
	}
	if why := unsound(v.pool); why != "" && b.State == glusterd.BrickOnline {
		p.decide(api.VerdictWait, m.object, "%s: brick %s of volume %s is moved when all of the volume is well: %s", m.why, b.Path, v.name, why)
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
	var others []place.Spot
	for i := range m.set {
		if n := p.nodeOf(&m.set[i]); n != nil && i != m.i {
			others = append(others, place.Spot{Node: n.name, Zone: n.zone})
		}
	}
	return place.Beside(p.openStores(), others, max(1, m.v.brickSizes()(m.number)))
}

func (p *planner) refuseMove(m *mover) {
	size := resource.NewQuantity(m.v.brickSizes()(m.number), resource.BinarySI)
	p.decide(api.VerdictRefuse, m.object, "%s, and brick %s of volume %s (%s, %s) has nowhere to go: no other node without a brick of the same set has room for it. "+
		"Add a StorageNode or a device, or undo the removal", m.why, m.brick().Path, m.v.name, layoutOfPool(m.v.pool), size)
}

// replace has a brick replaced, or filled again where it is; the set heals it then.
func (p *planner) replace(m *mover, spot place.Spot) {
	b, v := m.brick(), m.v
	if m.refill {
		params := map[string]string{glusterd.ParamOld: b.Name()}
		if p.storeOf(b).Root {
			params[glusterd.ParamForce] = "true"
		}
		p.command(glusterd.VerbResetBrick, v.name, params, api.RiskRedundancy, "%s: brick %s is filled again from the others of its set", m.why, b.Name())
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

// draining says whether a drain of bricks was started and not brought to an end.
func draining(v *glusterd.Volume) bool {
	return v.Task != nil && v.Task.Kind == glusterd.TaskRemoveBrick && v.Task.State != glusterd.TaskStopped
}

// drainSingles moves the files of bricks that are the only ones to have them: to other bricks of the volume, or to new ones that
// are added before.
func (p *planner) drainSingles(v *volume, movers []*mover) {
	if v.pool.State != glusterd.VolumeStarted {
		for _, m := range movers {
			p.decide(api.VerdictWait, m.object, "%s: volume %s is drained when it is started", m.why, v.name)
		}
		return
	}
	if draining(v.pool) {
		p.followDrain(v, movers)
		return
	}
	if t := v.pool.Task; t != nil && t.State == glusterd.TaskInProgress {
		for _, m := range movers {
			p.decide(api.VerdictWait, m.object, "%s: volume %s is drained when the %s that goes on has ended", m.why, v.name, strings.ToLower(t.Kind))
		}
		return
	}
	for _, b := range v.pool.Bricks {
		if b.State != glusterd.BrickOnline {
			p.cannotDrain(v, movers, &b)
			return
		}
	}
	p.startDrain(v, movers)
}

// cannotDrain tells that a brick does not serve. If it is one that is to go, its files are nowhere else.
func (p *planner) cannotDrain(v *volume, movers []*mover, b *glusterd.Brick) {
	for _, m := range movers {
		if m.brick().Name() != b.Name() {
			p.decide(api.VerdictWait, m.object, "%s: volume %s is drained when brick %s serves again", m.why, v.name, b.Name())
			continue
		}
		p.decide(api.VerdictRefuse, m.object, "%s, and brick %s of volume %s has the only copy of its files and does not serve: bring it back. "+
			"If it is lost for good, 'gluster volume remove-brick %s %s force' gives its files up", m.why, b.Path, v.name, v.name, b.Name())
	}
}

// startDrain drains bricks onto the rest of the volume; first it adds as many new bricks, where the rest is not large enough.
func (p *planner) startDrain(v *volume, movers []*mover) {
	var leave []string
	for _, m := range movers {
		leave = append(leave, m.brick().Name())
	}
	rest := len(v.pool.Bricks) - len(leave)
	if rest == 0 || !p.restHolds(v, movers, rest) {
		size := v.brickSizes()(movers[0].number)
		spots := p.spots([]int64{max(1, size)}, len(leave))
		if spots == nil {
			for _, m := range movers {
				p.refuseMove(m)
			}
			return
		}
		names, force := p.take(v, spots)
		p.command(glusterd.VerbAddBrick, v.name, brickParams(names, force), api.RiskNone, "%s: its files need another place first", movers[0].why)
		return
	}
	p.command(glusterd.VerbRemoveStart, v.name, map[string]string{glusterd.ParamBricks: strings.Join(leave, " ")}, api.RiskNone,
		"%s: the files of %s move to the other bricks", movers[0].why, joinFew(leave))
	p.awaitMovers(v, movers, "its files move")
}

// restHolds says whether the bricks that stay can take over what those that leave were promised.
func (p *planner) restHolds(v *volume, movers []*mover, rest int) bool {
	capacity := v.accepted()
	if capacity == 0 {
		return true
	}
	each, size := (capacity+int64(rest)-1)/int64(rest), v.brickSizes()
	for i := range v.pool.Bricks {
		if slices.ContainsFunc(movers, func(m *mover) bool { return m.number == i }) {
			continue
		}
		if s := p.storeOf(&v.pool.Bricks[i]); s == nil || s.Size/20*19-s.promised < each-size(i) {
			return false
		}
	}
	return true
}

func (p *planner) awaitMovers(v *volume, movers []*mover, what string) {
	for _, m := range movers {
		p.decide(api.VerdictWait, m.object, "%s: volume %s: %s", m.why, v.name, what)
	}
}

// followDrain brings a drain that was started to its end. One that says that it is completed, and could not move all files, has
// to be stopped and started again; to commit it would lose them.
func (p *planner) followDrain(v *volume, movers []*mover) {
	t := v.pool.Task
	params := map[string]string{glusterd.ParamBricks: strings.Join(t.Bricks, " ")}
	wanted := func(name string) bool {
		return slices.ContainsFunc(movers, func(m *mover) bool { return m.brick().Name() == name })
	}
	foreign := slices.ContainsFunc(t.Bricks, func(name string) bool { return !wanted(name) })
	switch {
	case foreign && len(movers) == 0 && v.pool.Brick(first(t.Bricks)) == nil: // an old one that was committed
	case foreign && v.declared == nil:
		p.awaitMovers(v, movers, "somebody drains it by hand")
	case foreign:
		p.command(glusterd.VerbRemoveStop, v.name, params, api.RiskNone, "%s are to stay", joinFew(t.Bricks))
	case t.State == glusterd.TaskInProgress:
		p.awaitMovers(v, movers, "its files move")
	case t.State == glusterd.TaskCompleted && t.Failures == 0:
		p.command(glusterd.VerbRemoveCommit, v.name, params, api.RiskRedundancy, "all files of %s were moved", joinFew(t.Bricks))
	default:
		p.command(glusterd.VerbRemoveStop, v.name, params, api.RiskNone, "%s", fmt.Sprintf("%d files could not be moved (%s): it is tried again", t.Failures, t.State))
	}
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// clearLeftovers removes the directories of bricks that a volume does not use any more, when all that it has of the volume is
// well without them. Those of volumes that nobody knows are left alone.
func (p *planner) clearLeftovers() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.declared.DeletionTimestamp != nil || v.pool.State != glusterd.VolumeStarted || unsound(v.pool) != "" || p.changes(v) {
			continue
		}
		for _, n := range p.nodes {
			for _, s := range n.stores {
				p.clearStore(v, n, s)
			}
		}
	}
}

func (p *planner) clearStore(v *volume, n *node, s *store) {
	if !n.running() || s.Problem != "" {
		return
	}
	for _, b := range s.Bricks {
		used := slices.ContainsFunc(v.pool.Bricks, func(x glusterd.Brick) bool { return p.nodeOf(&x) == n && x.Path == b.Path })
		if b.Volume == v.pool.ID && !used {
			// It is a copy of what the volume has elsewhere: no data goes with it.
			p.drop(n, b, api.RiskNone, fmt.Sprintf("volume %s does not use it any more, and all of the volume is well", v.name))
		}
	}
}

// leftovers says whether a node has directories of bricks that a volume does not use any more, and that can be removed.
func (p *planner) leftovers(n *node) bool {
	return n.running() && slices.ContainsFunc(n.stores, func(s *store) bool { return s.Problem == "" && p.leftover(n, s) })
}

// leftover says whether there is such a directory in a store.
func (p *planner) leftover(n *node, s *store) bool {
	return slices.ContainsFunc(s.Bricks, func(b glusterd.StoredBrick) bool {
		return slices.ContainsFunc(p.volumes, func(v *volume) bool {
			return v.declared != nil && v.pool != nil && v.pool.ID == b.Volume && !slices.ContainsFunc(v.pool.Bricks, func(x glusterd.Brick) bool {
				return p.nodeOf(&x) == n && x.Path == b.Path
			})
		})
	})
}

// changes says whether the plan asks for something of a volume, but for starting what is down of it.
func (p *planner) changes(v *volume) bool {
	for _, c := range p.plan.Commands {
		if c.Object == v.name && c.Verb != glusterd.VerbStart {
			return true
		}
	}
	return false
}
