package gluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// startBricks starts brick processes that ended, where their disk is well.
func (p *planner) startBricks(v *volume) {
	var down []string
	for i := range v.pool.Bricks {
		b := &v.pool.Bricks[i]
		n, s := p.nodeOf(b), p.storeOf(b)
		if b.State == glusterd.BrickOffline && n != nil && n.running() && !p.stopped[n.name] && s != nil && s.Problem == "" && !s.lost(b.Path) {
			down = append(down, b.Name())
		}
	}
	if len(down) == 0 {
		meta.RemoveStatusCondition(&v.status.Conditions, bricksStarted)
	}
	if len(down) > 0 && p.mayRestart(v, words.Few(down)) {
		p.command(glusterd.VerbStart, v.name, map[string]string{glusterd.ParamForce: "true"}, api.RiskNone, "%s", "not served: "+words.Few(down))
	}
}

// bricksStarted is the condition of a Volume that says when the bricks in its message were started the last time.
const bricksStarted = "BricksStarted"

// mayRestart says whether these bricks have not been started a moment ago, and notes that they are now.
func (p *planner) mayRestart(v *volume, bricks string) bool {
	c := meta.FindStatusCondition(v.status.Conditions, bricksStarted)
	if c != nil && c.Message == bricks {
		if left := c.LastTransitionTime.Add(p.waits.BrickStart).Sub(p.now); left > 0 {
			p.recheck(left)
			return false
		}
	}
	if p.successor != nil {
		return true // it is only told
	}
	meta.RemoveStatusCondition(&v.status.Conditions, bricksStarted)
	p.setCondition(v, metav1.Condition{Type: bricksStarted, Status: metav1.ConditionTrue, Reason: "NotServed", Message: bricks})
	return true
}

// healAsked is the condition of a Volume all of whose bricks serve while copies differ. It says since when, or when a heal was asked for last.
const healAsked = "HealAsked"

// askHeal has the self-heal daemons look, where they had time and copies differ still. By themselves they look when a brick comes back, and else
// each ten minutes (cluster.heal-timeout): what they cannot heal at the moment of its return, as others do not reach it yet, waits that long.
func (p *planner) askHeal(v *volume) {
	if v.pool.Unknown != "" || !healable(v.pool) {
		meta.RemoveStatusCondition(&v.status.Conditions, healAsked)
		return
	}
	c := meta.FindStatusCondition(v.status.Conditions, healAsked)
	if c != nil {
		if left := c.LastTransitionTime.Add(p.waits.BrickHeal).Sub(p.now); left > 0 {
			p.recheck(left)
			return
		}
		p.command(glusterd.VerbHeal, v.name, nil, api.RiskNone, "copies differ for %s, and all bricks serve", p.waits.BrickHeal)
		meta.RemoveStatusCondition(&v.status.Conditions, healAsked)
	}
	if p.successor == nil {
		p.recheck(p.waits.BrickHeal)
		p.setCondition(v, metav1.Condition{Type: healAsked, Status: metav1.ConditionTrue, Reason: "CopiesDiffer", Message: "copies differ, and all bricks serve"})
	}
}

// healable says whether all bricks of a volume serve, and something is to be healed that no person has to decide.
func healable(v *glusterd.Volume) bool {
	pending := false
	for i := range v.Bricks {
		b := &v.Bricks[i]
		if b.State != glusterd.BrickOnline || v.SetSize() > 1 && b.Heal == nil {
			return false
		}
		pending = pending || b.Heal != nil && b.Heal.Pending > 0
	}
	return pending
}

// recheck asks for another look after some time.
func (p *planner) recheck(after time.Duration) {
	if p.plan.Recheck == 0 || after < p.plan.Recheck {
		p.plan.Recheck = after
	}
}

// lost says whether a store can be read and the directory of a brick is not in it.
func (s *store) lost(path string) bool {
	return s.Problem == "" && !slices.ContainsFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == path })
}
