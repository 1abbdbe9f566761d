package torus

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// planVolumes makes and deletes block volumes, and writes the statuses of Volumes that change.
func (p *planner) planVolumes() {
	for _, v := range engine.OfKind[*api.Volume](p.view.Resources) {
		if v.DeletionTimestamp != nil {
			p.deleteVolume(v)
			continue
		}
		next := v.DeepCopy()
		p.judge(v, next)
		p.plan.PutResource(v, next)
	}
}

// refusalReason is the reason of the refusal of a volume that is refused.
func (p *planner) refusalReason(v *api.Volume) api.Reason {
	if p.lost(v) != "" {
		return api.ReasonLost
	}
	return api.ReasonInvalidSpec
}

// judge says in the next volume how v stands, and has it made if it is not there.
func (p *planner) judge(v, next *api.Volume) {
	object, s := engine.ResourceObject(v), &next.Status
	if p.word != nil {
		s.Lost = ""
	}
	refusal := cmp.Or(p.lost(v), p.refusal(v))
	var problems []string
	if refusal != "" {
		problems = []string{refusal}
		p.decide(api.VerdictRefuse, p.refusalReason(v), object, "%s", refusal)
	}
	engine.Accept(next, problems, p.now)
	switch {
	case p.word == nil:
		s.Message = "Torus does not answer"
		if s.State == "" {
			s.State = api.ResourcePending
		}
	case p.word.Volume(v.Name) != nil:
		s.State, s.Message = p.volumeState()
		s.ID = cmp.Or(s.ID, v.Name+"@"+p.now.UTC().Format(time.RFC3339))
		p.setPresent(next, metav1.Condition{Status: metav1.ConditionTrue, Reason: api.ReasonPresent})
		s.Layout, s.Source = fmt.Sprintf("block x %d", p.word.Replication), "torusblk --etcd "+p.speaker.torusd.Spec.Parameters[torus.ParamEtcd]+" nbd "+v.Name
		if s.Capacity == nil || refusal == "" {
			s.Capacity = resource.NewQuantity(v.Spec.Size.Value(), resource.BinarySI)
		}
	case p.lost(v) != "":
		s.State, s.Message, s.Source = api.ResourceOffline, refusal, ""
		s.ID, s.Lost = lostID(v), lostID(v) // also the name of one that an earlier Holdfast saw: without it the next look would make the volume anew
		p.setPresent(next, metav1.Condition{Status: metav1.ConditionFalse, Reason: api.ReasonDeletedOutside, Message: refusal})
	case refusal != "":
		s.State, s.Message = api.ResourcePending, refusal
	case p.word.Count(torus.PeerOK) < p.copies():
		s.State, s.Message = api.ResourcePending, fmt.Sprintf("each block is on %s, but %d are up",
			words.Plural(p.copies(), "peer"), p.word.Count(torus.PeerOK))
		p.decide(api.VerdictWait, api.ReasonInsufficientNodes, object, "%s", s.Message)
	default:
		s.State, s.Served, s.Message, s.ID, s.Source = api.ResourceCreating, false, "", "", ""
		meta.RemoveStatusCondition(&s.Conditions, api.ResourcePresent)
		if p.cluster.ModeOf() == api.ClusterObserved {
			s.State, s.Message = api.ResourcePending, "the cluster is in mode Observed: the volume does not exist and is "+
				"not created"
		}
		p.command(torus.VerbCreate, v.Name, map[string]string{torus.ParamBytes: strconv.FormatInt(v.Spec.Size.Value(), 10)}, api.RiskNone,
			"the cluster has no volume %s", v.Name)
	}
}

// lost says that a volume was there and is not any more; nothing while it is, or where a person has accepted the loss. torusctl tells
// no identity of a volume but its name, so when it was first seen is a part of the recorded one.
func (p *planner) lost(v *api.Volume) string {
	id := lostID(v)
	if p.word == nil || id == "" || p.word.Volume(v.Name) != nil || api.LossAccepted(v) && v.Status.Lost == id {
		return ""
	}
	return fmt.Sprintf("Torus has no volume %s any more, and Holdfast did not delete it; Torus frees the blocks of a volume that is deleted, "+
		"so its data has to come from a copy of yours; 'holdfast recreate volume %s --lost %s' makes a new, empty one", v.Name, v.Name, id)
}

// lostID is the recorded identity of a volume; its name where an earlier Holdfast saw it, which recorded none.
func lostID(v *api.Volume) string {
	if v.Status.ID == "" && v.Status.Source != "" {
		return v.Name
	}
	return v.Status.ID
}

// setPresent says whether Torus has a volume that it had: nothing is said while that was never in doubt.
func (p *planner) setPresent(v *api.Volume, c metav1.Condition) {
	if c.Status == metav1.ConditionTrue && meta.FindStatusCondition(v.Status.Conditions, api.ResourcePresent) == nil {
		return
	}
	c.Type, c.ObservedGeneration, c.LastTransitionTime = api.ResourcePresent, v.Generation, metav1.Time{Time: p.now.Truncate(time.Second)}
	meta.SetStatusCondition(&v.Status.Conditions, c)
}

// refusal says why a volume cannot be as it is declared; nothing when it can.
func (p *planner) refusal(v *api.Volume) string {
	switch {
	case v.Spec.Durability != nil:
		return "Torus keeps the same number of copies of all volumes: remove spec.durability, and see spec.torus.replication of the StorageCluster"
	case len(v.Spec.Options) > 0:
		return "Torus's volumes have no options: remove spec.options"
	case len(v.Spec.Auth.Allow) > 0:
		return "Torus has no authentication: remove spec.auth, and keep other machines out of its network"
	}
	wanted := torus.SizeText(v.Spec.Size.Value())
	if p.word == nil || p.word.Volume(v.Name) == nil {
		return ""
	}
	if x := p.word.Volume(v.Name); x.Size != wanted {
		return fmt.Sprintf("cannot change the size from %s to %s: Torus does not support it; create another volume and copy the data", x.Size, wanted)
	}
	return ""
}

func (p *planner) volumeState() (api.ResourceState, string) {
	switch down := p.word.Count(torus.PeerDown); {
	case down >= p.word.Replication:
		return api.ResourceOffline, words.Plural(down, "peer") + " of the ring are down, as many as hold each block: some blocks may be out of reach"
	case down > 0:
		return api.ResourceDegraded, words.Plural(down, "peer") + " of the ring is down"
	case p.fullest() >= fullPercent:
		return api.ResourceDegraded, "a store of the ring is full: writes may fail; add nodes, or delete volumes"
	}
	return api.ResourceOnline, ""
}

// deleteVolume lets a volume go: its data with it, or kept for one of the same name and size.
func (p *planner) deleteVolume(v *api.Volume) {
	if v.Spec.DeletionPolicy != api.DeletionWipe {
		p.plan.LetGo(v)
		return
	}
	next := v.DeepCopy()
	status := &next.Status
	status.State, status.Message = api.ResourceDeleting, ""
	switch {
	case p.word == nil:
		status.Message = "Torus does not answer"
	case p.word.Volume(v.Name) == nil:
		p.plan.LetGo(v)
		return
	case p.word.Volume(v.Name).InUse:
		status.Message = "in use by a client: deleted after the client released it (up to 30 s after a crash)"
	default:
		p.command(torus.VerbDelete, v.Name, nil, api.RiskData, "the Volume was deleted with deletionPolicy Wipe")
	}
	if status.Message != "" {
		p.decide(api.VerdictWait, api.ReasonInUse, "volume/"+v.Name, "%s", status.Message)
	}
	p.plan.PutResource(v, next)
}

// badVolumes tells of the volumes that clients could use and that are not whole now.
func (p *planner) badVolumes() (texts []string) {
	for _, v := range engine.OfKind[*api.Volume](p.view.Resources) {
		s := p.plan.Planned(v).Common()
		if v.DeletionTimestamp == nil && s.State != api.ResourceOnline && engine.Served(s.State) {
			texts = append(texts, fmt.Sprintf("volume %s is %s: %s", v.Name, s.State, s.Message))
		}
	}
	return texts
}
