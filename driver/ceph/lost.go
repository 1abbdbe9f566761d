package ceph

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// What a resource has in Ceph is known by its number, not by its name: a new, empty one of any name is made in a moment, while the
// data lies in the old one.

// loss is what Ceph does not have any more of a resource, and Holdfast did not delete.
type loss struct {
	// id is the identity of what is lost, and reason that of api.ResourcePresent.
	id, reason string
	// why says what is gone and what is left of it, back how a person gets it back, and anew what becomes of it when the loss is accepted.
	why, back, anew string
}

// losses are all that a resource has lost.
type losses []*loss

// maxLostID bounds the identity of several losses in status.lost, which the API bounds as well.
const maxLostID = 128

// id is the identity of what is lost. That of very many is a digest.
func (l losses) id() string {
	ids := make([]string, len(l))
	for i, one := range l {
		ids[i] = one.id
	}
	text := strings.Join(ids, ",")
	if len(text) <= maxLostID {
		return text
	}
	return fmt.Sprintf("%d-%x", len(ids), sha256.Sum256([]byte(text)))[:24]
}

// why says what is gone and what is left of it.
func (l losses) why() string {
	all := make([]string, len(l))
	for i, one := range l {
		all[i] = one.why
	}
	return strings.Join(all, "; ")
}

// taken says whether what has the name of something lost is not what was recorded.
func (l losses) taken() bool {
	return slices.ContainsFunc(l, func(one *loss) bool { return one.reason == api.ReasonNameTaken })
}

// refusal says what is gone, and what a person can do.
func (l losses) refusal(r api.Resource) engine.Objection {
	var back []string
	for _, one := range l {
		if one.back != "" && !slices.Contains(back, one.back) {
			back = append(back, one.back)
		}
	}
	text := l.why() + "; "
	if len(back) > 0 {
		text += strings.Join(back, ", and ") + ", or "
	}
	return engine.Refusal(api.ReasonLost, "%s'%s' %s", text, recreateCommand(r, l.id()), l[0].anew)
}

func recreateCommand(r api.Resource, id string) string {
	return fmt.Sprintf("holdfast recreate %s %s --lost %s", strings.ToLower(r.ResourceKind()), r.GetName(), id)
}

// accepted says whether a person has given up just what is lost, and tells of it.
func (p *planner) accepted(r api.Resource, l losses) bool {
	if len(l) == 0 || r.GetDeletionTimestamp() != nil || !api.LossAccepted(r) || r.Common().Lost != l.id() {
		return false
	}
	p.decide(api.VerdictDo, api.ReasonLossAccepted, engine.ResourceObject(r), "loss accepted (%s): %s",
		api.AnnotationRecreate, l.why())
	return true
}

// setLost says in the next status of a resource what it has lost. Nothing is said while that was never in doubt, and where nobody can tell.
func (p *planner) setLost(next api.Resource, known bool, l losses) {
	s := next.Common()
	if !known {
		return
	}
	made := s.State != api.ResourcePending && s.State != api.ResourceCreating
	s.Served = s.Served && (made || len(l) > 0 || !api.LossAccepted(next)) // what was given up begins anew
	c := metav1.Condition{Type: api.ResourcePresent, Status: metav1.ConditionTrue, Reason: api.ReasonPresent}
	s.Lost = l.id()
	if len(l) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, l[0].reason, words.Cut(l.why(), maxMessage)
	} else if neverServed(s) || meta.FindStatusCondition(s.Conditions, api.ResourcePresent) == nil {
		meta.RemoveStatusCondition(&s.Conditions, api.ResourcePresent)
		return
	}
	c.ObservedGeneration, c.LastTransitionTime = next.GetGeneration(), metav1.Time{Time: p.now.Truncate(time.Second)}
	meta.SetStatusCondition(&s.Conditions, c)
}

// findPools finds the pools of a resource by their numbers, those that have none by their names. What a person has given up counts as
// never made.
func (p *planner) findPools(r api.Resource, pools ...*poolPlan) losses {
	if !p.poolsKnown() {
		return nil
	}
	var all losses
	for _, x := range pools {
		x.have = p.poolNamed(x.Name)
		if x.lost = p.poolLost(x); x.lost != nil {
			all = append(all, x.lost)
		}
	}
	if p.accepted(r, all) {
		for _, x := range pools {
			x.forget()
		}
		return nil
	}
	for _, x := range pools {
		if x.lost != nil {
			x.have = nil
		}
	}
	return all
}

// forget makes a pool that is lost one that was never there.
func (x *poolPlan) forget() {
	if x.lost != nil {
		x.lost, x.id = nil, 0
	}
}

// poolLost says how the pool that was recorded is gone; nil while it is there. Nobody misses that of a resource which is deleted.
func (p *planner) poolLost(x *poolPlan) *loss {
	if x.id == 0 || x.DeletionTimestamp != nil || x.have != nil && x.owns() {
		return nil
	}
	l := p.poolGone(x)
	if x.have != nil {
		l.taken(x, p.poolName(x.id))
	}
	if l.id = strconv.FormatInt(x.id, 10); x.owner != nil {
		l.id = "pool-" + l.id
	}
	return l
}

// poolGone says where a pool is that has its name no more.
func (p *planner) poolGone(x *poolPlan) *loss {
	now := p.poolName(x.id)
	if now == "" {
		return &loss{
			reason: api.ReasonDeletedOutside, anew: "creates a new, empty one",
			why:  fmt.Sprintf("pool %s (id %d) was deleted outside Holdfast", x.Name, x.id),
			back: "Ceph keeps nothing of a deleted pool: restore its data from a backup",
		}
	}
	return &loss{
		reason: api.ReasonRenamedOutside, anew: "creates a new, empty one",
		why:  fmt.Sprintf("pool %s (id %d) was renamed to %s outside Holdfast", x.Name, x.id, now),
		back: fmt.Sprintf("rename it back with 'holdfast ceph osd pool rename %s %s'", now, x.Name),
	}
}

// taken says that another pool has the name of the one that is gone, which is called now, or is deleted.
func (l *loss) taken(x *poolPlan, now string) {
	left := "deleted"
	if now != "" {
		left = "now named " + now
		l.back = fmt.Sprintf("rename pool %s (id %d) to another name, and %s back to %s", x.Name, x.have.ID, now, x.Name)
	}
	l.reason, l.anew = api.ReasonNameTaken, fmt.Sprintf("accepts pool %s (id %d) as this one", x.Name, x.have.ID)
	l.why = fmt.Sprintf("Ceph's pool %s has another id (%d) than the recorded one (id %d), which is %s",
		x.Name, x.have.ID, x.id, left)
}

// losses are what a pool is to a resource that has no other one.
func (x *poolPlan) losses() losses {
	if x.lost == nil {
		return nil
	}
	return losses{x.lost}
}

// byID are the parameters of a command that is about one pool, and no other of its name.
func (x *poolPlan) byID() map[string]string {
	return map[string]string{paramID: strconv.FormatInt(x.id, 10)}
}

// tellKept tells what a Pool leaves behind that is deleted with its data: only the pool that has its name and its number is deleted.
func (p *planner) tellKept(x *poolPlan) {
	if now := p.poolName(x.id); now != "" && now != x.Name {
		p.decide(api.VerdictSkip, api.ReasonKeptAsIs, x.line(),
			"its pool (id %d) was renamed to %s outside Holdfast and stays", x.id, now)
	}
	if x.have != nil && !x.owns() {
		p.decide(api.VerdictSkip, api.ReasonNotManaged, x.line(),
			"pool %s in Ceph (id %d) was not created for it and stays", x.Name, x.have.ID)
	}
}

// lostPool says how the pool that a Pool, or a store, has by a name is gone; nil while it is there. Nobody else uses what has its name.
func (p *planner) lostPool(name string) *loss {
	for _, x := range p.allPools() {
		if x.Name == name && x.lost != nil {
			return x.lost
		}
	}
	return nil
}
