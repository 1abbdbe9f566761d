package gluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/place"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// resize gives a volume more room when its size was raised: more of the stores that its bricks lie in, or more sets of bricks.
func (p *planner) resize(v *volume, want layout) {
	size, have := v.declared.Spec.Size.Value(), v.accepted()
	switch {
	case size < have:
		p.refuse(v, api.ReasonInvalidSpec, "its size cannot go from %s to %s: bricks never shrink. Make a smaller Volume and copy the data", v.status.Capacity, &v.declared.Spec.Size)
		return
	case size == have:
		return
	case v.pool.Task != nil && v.pool.Task.State == glusterd.TaskInProgress:
		p.await(v, api.ReasonTaskInProgress, "its size is raised after the running %s", strings.ToLower(v.pool.Task.Kind))
		return
	}
	sets := len(v.pool.Sets())
	for more := 0; more <= maxSets; more++ {
		members := want.members(size, sets+more)
		extra, fits := p.extra(v, members)
		if !fits {
			continue
		}
		promise(extra, 1)
		spots := p.spots(want, members, more)
		if n := p.comingNode(); more > 0 && n != nil {
			promise(extra, -1)
			p.await(v, api.ReasonJoining, "waiting for node %s to join the pool before placing bricks", n.name)
			return
		}
		if more == 0 || spots != nil {
			p.grow(v, want, sets+more, spots)
			return
		}
		promise(extra, -1)
	}
	p.refuse(v, api.ReasonInsufficientSpace, "it cannot grow from %s to %s: %s", v.status.Capacity, &v.declared.Spec.Size, p.noPlace(want, size-have))
}

// extra is what each store has to promise more when the bricks that are there grow to these sizes, and whether it can.
func (p *planner) extra(v *volume, members []int64) (extra map[*store]int64, fits bool) {
	size := v.brickSizes()
	extra = map[*store]int64{}
	for i := range v.pool.Bricks {
		if s := p.storeOf(&v.pool.Bricks[i]); s != nil {
			extra[s] += members[i%len(members)] - size(i)
		}
	}
	for s, more := range extra {
		if more > 0 && s.Size/20*19-s.promised < more {
			return nil, false
		}
	}
	return extra, true
}

func promise(extra map[*store]int64, sign int64) {
	for s, more := range extra {
		s.promised += sign * more
	}
}

// comingNode is a node that will be in the pool soon, where there is one.
func (p *planner) comingNode() *node {
	if i := slices.IndexFunc(p.nodes, p.onItsWay); i >= 0 {
		return p.nodes[i]
	}
	return nil
}

// grow gives a volume more room, which is promised already: in place, or by sets that are added. What was promised is the new size only when the pool has
// the bricks for it: adding them may be cut off.
func (p *planner) grow(v *volume, want layout, sets int, spots []place.Spot) {
	if len(spots) == 0 {
		from := v.status.Capacity
		v.status.Capacity = resource.NewQuantity(v.declared.Spec.Size.Value(), resource.BinarySI)
		p.describe(v)
		p.decide(api.VerdictDo, api.ReasonDeclared, v.object(), "the size goes from %s to %s", from, v.status.Capacity)
		return
	}
	names, force := p.take(v, spots)
	p.setBalanced(v, metav1.ConditionFalse, "BricksAdded", taskID(v.pool))
	p.command(glusterd.VerbAddBrick, v.name, brickParams(v, names, force), api.RiskNone, "the size goes from %s to %s, as %s",
		v.status.Capacity, &v.declared.Spec.Size, want.text(sets))
}

// brickParams are the parameters of a command that adds bricks to a volume as the plan sees it. The report that tells of the bricks may
// come later than the next plan, which would add others.
func brickParams(v *volume, names []string, force bool) map[string]string {
	has := make([]string, len(v.pool.Bricks))
	for i := range v.pool.Bricks {
		has[i] = v.pool.Bricks[i].Name()
	}
	params := map[string]string{glusterd.ParamBricks: strings.Join(names, " "), glusterd.ParamHas: strings.Join(has, " ")}
	if force {
		params[glusterd.ParamForce] = "true"
	}
	return params
}

func taskID(v *glusterd.Volume) string {
	if v.Task == nil {
		return ""
	}
	return v.Task.ID
}

func (p *planner) setBalanced(v *volume, status metav1.ConditionStatus, reason, message string) {
	p.setCondition(v, metav1.Condition{Type: balanced, Status: status, Reason: reason, Message: message})
}

// rebalance moves files to bricks that were added, once: until a rebalance has ended that is not the one that was remembered
// when they were added.
func (p *planner) rebalance(v *volume) {
	c := meta.FindStatusCondition(v.status.Conditions, balanced)
	if c == nil || c.Status == metav1.ConditionTrue || v.accepted() != v.declared.Spec.Size.Value() || p.adds(v) {
		return
	}
	t := v.pool.Task
	switch {
	case t != nil && t.Kind == glusterd.TaskRebalance && t.ID != c.Message && t.State == glusterd.TaskCompleted && t.Failures == 0:
		p.setBalanced(v, metav1.ConditionTrue, "Rebalanced", "")
	case t != nil && t.Kind == glusterd.TaskRebalance && t.ID != c.Message && t.State == glusterd.TaskCompleted:
		// They can be read where they are. To try again for ever would move nothing that could not be moved now.
		p.setBalanced(v, metav1.ConditionTrue, "SomeFilesStay", fmt.Sprintf(
			"%d files could not be moved to the bricks that were added: 'gluster volume rebalance %s start' tries again", t.Failures, v.name))
	case t != nil && t.State == glusterd.TaskInProgress:
		p.await(v, api.ReasonMovingData, "files are moving to the bricks that were added")
	case sets.Unsound(v.pool) != "":
		p.await(v, api.ReasonNotReady, "rebalance waits until the volume is healthy: %s", sets.Unsound(v.pool))
	case t != nil && t.Kind == glusterd.TaskRemoveBrick:
		p.await(v, api.ReasonTaskInProgress, "files move to the bricks that were added when the brick that is drained is gone")
	default:
		p.command(glusterd.VerbRebalance, v.name, nil, api.RiskNone, "bricks were added: starting a rebalance")
	}
}

// adds says whether the plan adds bricks to a volume.
func (p *planner) adds(v *volume) bool {
	for _, c := range p.plan.Commands {
		if c.Object == v.name && c.Verb == glusterd.VerbAddBrick {
			return true
		}
	}
	return false
}
