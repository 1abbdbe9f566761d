package gluster

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/drift"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// A volume is known by its identity, not by its name: the pool makes a new, empty one of any name, while the bricks of the old one
// hold the data.

// recordedID is the identity of the volume that a Volume was last seen to be; empty where none was.
func recordedID(v *api.Volume) string {
	switch {
	case v == nil:
		return ""
	case v.Status.ID == "" && v.Status.Source != "":
		return unknownID
	}
	return v.Status.ID
}

// unknownID stands for the identity of a volume that only an earlier Holdfast saw, which recorded none.
const unknownID = "unknown"

// whyLost says why the volume that was recorded is not there; empty while it is, or where none was. Of a pool that does not answer
// nobody can say.
func (p *planner) whyLost(v *volume) string {
	id := recordedID(v.declared)
	switch {
	case id == "" || !p.ready():
		return ""
	case v.pool == nil:
		return api.ReasonDeletedOutside
	case v.pool.ID != id && id != unknownID:
		return api.ReasonNameTaken
	}
	return ""
}

// findLost looks whether a volume is gone. One whose loss a person has accepted counts as one that never was. Another one that the
// pool has by its name is returned: nobody declares that.
func (p *planner) findLost(v *volume) (other *volume) {
	reason := p.whyLost(v)
	switch {
	case reason == "":
	case v.declared.DeletionTimestamp == nil && api.LossAccepted(v.declared) && v.declared.Status.Lost == recordedID(v.declared):
		p.decide(api.VerdictDo, api.ReasonLossAccepted, v.object(), "loss accepted (%s): its old bricks do not belong to the volume any more: %s",
			api.AnnotationRecreate, words.Few(p.remains(v)))
		v.accept()
	default:
		v.lost = reason
		if v.pool != nil {
			other = &volume{name: v.name, pool: v.pool}
			v.other, v.pool = v.pool.ID, nil
		}
	}
	return other
}

// record notes which volume of the pool a Volume is.
func (p *planner) record(v *volume) {
	v.status.ID, v.status.Lost = v.pool.ID, drift.ID(v.removed)
	if len(v.removed) > 0 {
		why, _ := drift.RemovedText(v.name, v.removed)
		p.setCondition(v, metav1.Condition{
			Type: api.ResourcePresent, Status: metav1.ConditionFalse, Reason: api.ReasonDeletedOutside,
			Message: words.Cut(why, maxText),
		})
	} else if meta.FindStatusCondition(v.status.Conditions, api.ResourcePresent) != nil {
		p.setCondition(v, metav1.Condition{Type: api.ResourcePresent, Status: metav1.ConditionTrue, Reason: api.ReasonPresent})
	}
}

// accept forgets the volume that is gone.
func (v *volume) accept() {
	v.status.ID, v.status.Bricks, v.status.Capacity, v.status.Limit, v.status.Options = "", nil, nil, nil, nil
	v.status.Layout, v.status.Source, v.status.Backups, v.status.Conditions, v.status.Lost = "", "", nil, nil, ""
	v.was = nil
	v.status.State, v.status.Served = api.ResourcePending, false
}

// tellLost tells that a volume is gone, what is left of it, and what a person can do. Nothing is made in its place in silence.
func (p *planner) tellLost(v *volume) {
	id := recordedID(v.declared)
	why := fmt.Sprintf("volume %s (id %s) was deleted outside Holdfast", v.name, id)
	if v.lost == api.ReasonNameTaken {
		why = fmt.Sprintf("the pool's volume %s is another one (id %s) than the one that was recorded (id %s)", v.name, v.other, id)
	}
	left := "no brick of it is left"
	if bricks := p.remains(v); len(bricks) > 0 {
		left = "its data is left in " + words.Few(bricks)
	}
	v.refusal = fmt.Sprintf("%s; %s; copy what you need, then %s", why, left, p.nextStep(v))
	p.decide(api.VerdictRefuse, api.ReasonLost, v.object(), "%s", v.refusal)
	p.decide(api.VerdictSkip, api.ReasonChangedOutside, v.object(), "%s", why)
	v.status.ID, v.status.Lost = id, id
	v.status.Heals, v.status.SplitBrains, v.status.Source, v.status.Backups = 0, nil, "", nil
	for i := range v.status.Bricks {
		b := &v.status.Bricks[i]
		b.Online, b.Message = false, words.Cut(p.remainsOf(id, b), maxBrickText)
	}
	p.setCondition(v, metav1.Condition{Type: api.ResourcePresent, Status: metav1.ConditionFalse, Reason: v.lost, Message: why})
}

func (p *planner) nextStep(v *volume) string {
	accept := fmt.Sprintf("'holdfast recreate volume %s --lost %s'", v.name, recordedID(v.declared))
	if v.lost == api.ReasonNameTaken {
		return accept + " takes the pool's volume for this one"
	}
	return accept + " makes a new, empty one"
}

// remains are the bricks that hold data of a volume that is gone, as address:path.
func (p *planner) remains(v *volume) (bricks []string) {
	id := recordedID(v.declared)
	for _, n := range p.nodes {
		for _, s := range n.stores {
			for _, b := range s.Bricks {
				if b.Volume == id || id == unknownID && b.Volume != "" && v.recorded(n.name, b.Path) != nil {
					bricks = append(bricks, n.address+":"+b.Path)
				}
			}
		}
	}
	for _, b := range v.declared.Status.Bricks { // of a node that is not heard nobody can say
		n := p.nodeNamed(b.Node)
		name := cmp.Or(address(n), b.Node) + ":" + b.Path
		if (n == nil || !n.running()) && !slices.Contains(bricks, name) {
			bricks = append(bricks, name+" (its node is disconnected)")
		}
	}
	return bricks
}

func address(n *node) string {
	if n == nil {
		return ""
	}
	return n.address
}

// remainsOf says what a brick of a volume that is gone is by now.
func (p *planner) remainsOf(id string, b *api.VolumeBrick) string {
	n, s := p.nodeNamed(b.Node), p.storeNamed(b.Node, b.Path)
	switch {
	case n == nil || !n.running():
		return "its node is disconnected"
	case s == nil || s.Problem != "":
		return "its device or directory cannot be read"
	case s.lost(b.Path) || id != unknownID && s.stored(b.Path).Volume != id:
		return "it does not hold the volume's data any more"
	}
	return "it holds data of the volume, which the pool does not have any more"
}

// tellStrays names bricks in the stores that belong to no volume that anybody knows. They are left alone.
func (p *planner) tellStrays() {
	known := map[string]bool{"": true}
	for _, v := range p.volumes {
		known[recordedID(v.declared)] = true
		if v.pool != nil {
			known[v.pool.ID] = true
		}
	}
	for _, n := range p.nodes {
		var strays []string
		for _, s := range n.stores {
			for _, b := range s.Bricks {
				if !known[b.Volume] {
					strays = append(strays, b.Path+" (volume id "+b.Volume+")")
				}
			}
		}
		if len(strays) > 0 && n.running() {
			p.decide(api.VerdictSkip, api.ReasonNotManaged, n.object(), "it has bricks of volumes that the pool does not have, which are left alone: %s", words.Few(strays))
		}
	}
}
