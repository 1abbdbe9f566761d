package gluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// isLost says whether a brick does not serve because its directory is gone from a store that is well.
func (p *planner) isLost(v *volume, b *glusterd.Brick) bool {
	n, s := p.nodeOf(b), p.storeOf(b)
	return v.declared != nil && v.pool.State == glusterd.VolumeStarted && b.State == glusterd.BrickOffline && s != nil && n.running() && s.lost(b.Path)
}

// bricksLost is the condition of a Volume that says since when the directories of the bricks in its message are gone.
const bricksLost = "BricksLost"

// noteLost notes since when which directories are gone, and says how long they still may be before they are taken for lost. The
// node that one is on tells of what is in its stores later than the speaker tells of a brick that was only just made, and takes
// some seconds to serve.
func (p *planner) noteLost(v *volume) (left time.Duration) {
	var lost []string
	for i := range v.pool.Bricks {
		if p.isLost(v, &v.pool.Bricks[i]) {
			lost = append(lost, v.pool.Bricks[i].Name())
		}
	}
	text := words.Few(lost)
	if c := meta.FindStatusCondition(v.status.Conditions, bricksLost); c == nil || c.Message != text {
		meta.RemoveStatusCondition(&v.status.Conditions, bricksLost)
	}
	if len(lost) == 0 {
		return 0
	}
	p.setCondition(v, metav1.Condition{Type: bricksLost, Status: metav1.ConditionTrue, Reason: "DirectoryGone", Message: text})
	if left = meta.FindStatusCondition(v.status.Conditions, bricksLost).LastTransitionTime.Add(p.waits.BrickLost).Sub(p.now); left > 0 {
		p.recheck(left)
		p.decide(api.VerdictWait, api.ReasonGracePeriod, v.object(), "missing from healthy stores: %s; waiting before they count as lost", text)
	}
	return left
}
