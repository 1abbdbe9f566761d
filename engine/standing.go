package engine

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/outside"
)

// putStandings completes a plan with the conditions Ready, Reconciling and Stalled of all resources and nodes of the view. They follow
// from the statuses that the plan has and from its decisions, so that no driver says them itself.
func putStandings(v *View, p *Plan, now time.Time) {
	for _, was := range v.Resources {
		object := ResourceObject(was)
		i := slices.IndexFunc(p.Resources, func(c ResourceChange) bool { return c.Object() == object })
		if i >= 0 && p.Resources[i].Gone {
			continue
		}
		if i < 0 {
			if conditions := resourceConditions(was, p, now); !equality.Semantic.DeepEqual(was.Common().Conditions, conditions) {
				next := CopyResource(was)
				next.Common().Conditions = conditions
				p.Resources = append(p.Resources, ResourceChange{Resource: next, Unadopted: true})
			}
			continue
		}
		next := p.Resources[i].Resource
		keepStanding(next.Common(), was.Common())
		next.Common().Conditions = resourceConditions(next, p, now)
		if equality.Semantic.DeepEqual(was, next) {
			p.Resources = slices.Delete(p.Resources, i, i+1)
		}
	}
	for i := range v.Nodes {
		putNodeStanding(&v.Nodes[i], p, now)
	}
}

// keepStanding has a status that a driver made anew keep the conditions that are not the driver's, with the times when they changed.
func keepStanding(next, was *api.ResourceStatus) {
	for _, kind := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled, api.ClusterInSync} {
		if c := meta.FindStatusCondition(was.Conditions, kind); c != nil && meta.FindStatusCondition(next.Conditions, kind) == nil {
			next.Conditions = append(next.Conditions, *c)
		}
	}
}

// resourceConditions are the conditions of a resource, with Ready, Reconciling and Stalled as they are now.
func resourceConditions(r api.Resource, p *Plan, now time.Time) []metav1.Condition {
	s := r.Common()
	if s.ObservedGeneration <= 0 {
		return s.Conditions // no driver has looked at it yet
	}
	conditions := slices.Clone(s.Conditions)
	kstatus.Set(&conditions, s.ObservedGeneration, resourceStanding(r, p), now)
	outside.Note(&conditions, s.ObservedGeneration, ResourceObject(r), p.Decisions, p.Status.Health != "", now)
	return conditions
}

func resourceStanding(r api.Resource, p *Plan) kstatus.Standing {
	s, object := r.Common(), ResourceObject(r)
	accepted := meta.FindStatusCondition(s.Conditions, api.ResourceAccepted)
	present := meta.FindStatusCondition(s.Conditions, api.ResourcePresent)
	switch {
	case r.GetDeletionTimestamp() != nil:
		return kstatus.Standing{Reason: api.ReasonDeleting, Message: cmp.Or(s.Message, "it is being deleted")}
	case present != nil && present.Status == metav1.ConditionFalse:
		message := cmp.Or(present.Message, s.Message, "the storage system does not have it any more")
		return kstatus.Standing{Stalled: true, Reason: api.ReasonLost, Message: message}
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		reason := cmp.Or(reasonOf(p, object, api.VerdictRefuse), api.ReasonInvalidSpec)
		return kstatus.Standing{Stalled: true, Reason: reason, Message: cmp.Or(accepted.Message, s.Message, "it is refused")}
	case s.State == api.ResourceOnline:
		return kstatus.Standing{Ready: true, Reason: api.ReasonReady}
	}
	reason := cmp.Or(s.Reason, reasonOf(p, object, api.VerdictWait), api.ReasonNotReady)
	return kstatus.Standing{Reason: reason, Message: cmp.Or(s.Message, stateText(s.State))}
}

// stateText says how a resource is of which nothing else is said.
func stateText(state api.ResourceState) string {
	return "it is " + string(cmp.Or(state, api.ResourcePending))
}

// reasonOf is the reason of the first decision on an object with a verdict; empty where there is none.
func reasonOf(p *Plan, object string, verdict api.Verdict) api.Reason {
	for _, d := range p.Decisions {
		if d.Object == object && d.Verdict == verdict {
			return d.Reason
		}
	}
	return ""
}

// putNodeStanding says of a node how it is: one is ready whose host and devices are found, and are the cluster's.
func putNodeStanding(n *api.StorageNode, p *Plan, now time.Time) {
	i := slices.IndexFunc(p.Nodes, func(s NodeStatus) bool { return s.Name == n.Name })
	status := &n.Status
	if i >= 0 {
		status = &p.Nodes[i].Status
	}
	if status.ObservedGeneration <= 0 {
		return // no driver has looked at it yet
	}
	conditions := slices.Clone(status.Conditions)
	kstatus.Set(&conditions, status.ObservedGeneration, nodeStanding(n, status, p), now)
	outside.Note(&conditions, status.ObservedGeneration, NodeObject(n.Name), p.Decisions, p.Status.Health != "", now)
	switch {
	case i >= 0:
		status.Conditions = conditions
	case !equality.Semantic.DeepEqual(status.Conditions, conditions):
		next := *status.DeepCopy()
		next.Conditions = conditions
		p.Nodes = append(p.Nodes, NodeStatus{Name: n.Name, Status: next})
	}
}

func nodeStanding(n *api.StorageNode, status *api.StorageNodeStatus, p *Plan) kstatus.Standing {
	object := NodeObject(n.Name)
	accepted := meta.FindStatusCondition(status.Conditions, api.NodeAccepted)
	switch {
	case n.DeletionTimestamp != nil:
		return kstatus.Standing{Reason: api.ReasonDeleting, Message: "it is being deleted"}
	case accepted == nil:
		return kstatus.Standing{Reason: api.ReasonNotReady, Message: "the leader has not observed it yet"}
	case accepted.Status == metav1.ConditionTrue:
		return kstatus.Standing{Ready: true, Reason: api.ReasonReady}
	case accepted.Reason == ReasonRefused:
		reason := cmp.Or(reasonOf(p, object, api.VerdictRefuse), api.ReasonNodeUnusable)
		return kstatus.Standing{Stalled: true, Reason: reason, Message: cmp.Or(accepted.Message, "it is refused")}
	}
	reason := cmp.Or(reasonOf(p, object, api.VerdictWait), api.ReasonNotReady)
	return kstatus.Standing{Reason: reason, Message: cmp.Or(accepted.Message, "it waits")}
}

// standCluster sets Reconciling and Stalled of a cluster by its condition Ready.
func standCluster(s *api.StorageClusterStatus, now time.Time) {
	ready := meta.FindStatusCondition(s.Conditions, api.ClusterReady)
	if ready == nil {
		return
	}
	stand, was := kstatus.Standing{Reason: api.Reason(ready.Reason), Message: ready.Message}, *ready
	stand.Ready, stand.Stalled = ready.Status == metav1.ConditionTrue, ready.Reason == ReasonRefused
	kstatus.Set(&s.Conditions, s.ObservedGeneration, stand, now)
	if was.Status == metav1.ConditionUnknown { // the state is not known, and the leader retries
		meta.SetStatusCondition(&s.Conditions, was)
	}
	if was.Reason == ReasonPaused {
		meta.RemoveStatusCondition(&s.Conditions, api.ConditionReconciling) // the leader does not work on it
	}
}
