package gluster

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// draining says whether a drain of bricks was started and not brought to an end.
func draining(v *glusterd.Volume) bool {
	return v.Task != nil && v.Task.Kind == glusterd.TaskRemoveBrick && v.Task.State != glusterd.TaskStopped
}

// drainSingles moves the files of bricks that are the only ones to have them: to other bricks of the volume, or to new ones that
// are added before.
func (p *planner) drainSingles(v *volume, movers []*mover) {
	if v.pool.State != glusterd.VolumeStarted {
		for _, m := range movers {
			p.decide(api.VerdictWait, api.ReasonNotReady, m.object, "%s: volume %s is drained when it is started", m.why, v.name)
		}
		return
	}
	if draining(v.pool) {
		p.followDrain(v, movers)
		return
	}
	if t := v.pool.Task; t != nil && t.State == glusterd.TaskInProgress {
		for _, m := range movers {
			p.decide(api.VerdictWait, api.ReasonTaskInProgress, m.object, "%s: volume %s is drained after the running %s", m.why, v.name, strings.ToLower(t.Kind))
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
			p.decide(api.VerdictWait, api.ReasonNotReady, m.object, "%s: volume %s is drained when brick %s serves again", m.why, v.name, b.Name())
			continue
		}
		if n := p.nodeOf(b); n != nil && p.isRejected(n) {
			p.decide(api.VerdictRefuse, api.ReasonWouldLoseData, m.object, "%s, and brick %s of volume %s has the only copy of its files, which it cannot give away while the others reject it "+
				"(Peer Rejected): mend its configuration by hand (gluster/glusterfs#4016)", m.why, b.Path, v.name)
			continue
		}
		p.decide(api.VerdictRefuse, api.ReasonWouldLoseData, m.object,
			"%s, but brick %s of volume %s has the only copy of its files and does not serve: bring it back; if it is lost "+
				"for good, 'gluster volume remove-brick %s %s force' discards its files", m.why, b.Path, v.name, v.name, b.Name())
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
		spots := p.spots(layoutOfPool(v.pool), []int64{max(1, size)}, len(leave))
		if spots == nil {
			for _, m := range movers {
				p.refuseMove(m)
			}
			return
		}
		names, force := p.take(v, spots)
		p.command(glusterd.VerbAddBrick, v.name, brickParams(v, names, force), api.RiskNone, "%s: its files need another place first", movers[0].why)
		return
	}
	p.command(glusterd.VerbRemoveStart, v.name, map[string]string{glusterd.ParamBricks: strings.Join(leave, " ")}, api.RiskNone,
		"%s: the files of %s move to the other bricks", movers[0].why, words.Few(leave))
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
		p.decide(api.VerdictWait, api.ReasonMovingData, m.object, "%s: volume %s: %s", m.why, v.name, what)
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
	case foreign && len(movers) == 0 && v.pool.Brick(t.Bricks[0]) == nil: // an old one that was committed
	case foreign && v.declared == nil:
		p.awaitMovers(v, movers, "it is drained by hand")
	case foreign:
		p.command(glusterd.VerbRemoveStop, v.name, params, api.RiskNone, "keeping %s", words.Few(t.Bricks))
	case t.State == glusterd.TaskInProgress:
		p.awaitMovers(v, movers, "its files move")
	case t.State == glusterd.TaskCompleted && t.Failures == 0:
		leaveOut(p, v, t.Bricks)
		p.command(glusterd.VerbRemoveCommit, v.name, params, api.RiskRedundancy, "all files of %s were moved", words.Few(t.Bricks))
	default:
		p.command(glusterd.VerbRemoveStop, v.name, params, api.RiskNone, "%s", fmt.Sprintf("%d files could not be moved (%s): it is tried again", t.Failures, t.State))
	}
}
