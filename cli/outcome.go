package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// applied is what of a cluster was applied, and is waited for.
type applied struct {
	// whole is set where the cluster itself was applied, or a node of it: then all that the cluster consists of is waited for.
	whole bool
	// resources are the resources that were applied, as decisions name them.
	resources map[string]bool
}

// outcome is how far what was applied is.
type outcome int

const (
	ready outcome = iota
	underWay
	refused
	// held: the cluster's mode keeps the engine from doing what is wanted.
	held
)

// outcome judges the snapshot by what the engine wrote of the generations that are asked for: by that of the cluster where it was
// applied or a node of it was, and by that of each resource that was. Whatever else is declared does not matter.
func (s snapshot) outcome() outcome {
	if c := s.condition(api.ClusterReady); c != nil && c.ObservedGeneration >= s.Cluster.Generation &&
		(c.Reason == engine.ReasonPaused || c.Reason == engine.ReasonObserved) {
		return held
	}
	if s.Cluster == nil {
		return underWay
	}
	if s.behind() {
		return underWay
	}
	is := ready
	if s.applied == nil || s.applied.whole {
		is = s.clusterOutcome()
	}
	for _, r := range s.Resources {
		if s.applied != nil && s.applied.resources[engine.ResourceObject(r)] {
			is = max(is, s.resourceOutcome(r))
		}
	}
	return is
}

// behind says whether the engine has not yet seen the newest spec of something that is waited for. What is refused may have been refused for
// the lack of it.
func (s snapshot) behind() bool {
	if s.applied == nil || s.applied.whole {
		if s.Cluster.Status.ObservedGeneration < s.Cluster.Generation || s.nodeBehind() {
			return true
		}
	}
	if s.applied == nil {
		return false
	}
	found := 0
	for _, r := range s.Resources {
		if s.applied.resources[engine.ResourceObject(r)] {
			if found++; r.Common().ObservedGeneration < r.GetGeneration() {
				return true
			}
		}
	}
	return found < len(s.applied.resources)
}

func (s snapshot) clusterOutcome() outcome {
	switch {
	case len(s.clusterRefusals()) > 0:
		return refused
	case meta.IsStatusConditionTrue(s.Cluster.Status.Conditions, api.ClusterReady):
		return ready
	}
	return underWay
}

func (s snapshot) resourceOutcome(r api.Resource) outcome {
	conditions := r.Common().Conditions
	stalled := meta.FindStatusCondition(conditions, api.ConditionStalled)
	switch {
	case stalled != nil && stalled.Reason == engine.ReasonNoCluster:
		return underWay // the cluster was applied after it
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return refused
	case meta.IsStatusConditionTrue(conditions, api.ConditionReady):
		return ready
	case s.nothingIsMade():
		return refused
	}
	return underWay
}

// nothingIsMade says whether the cluster is refused as a whole.
func (s snapshot) nothingIsMade() bool {
	report := s.Cluster.Status.Report
	return report != nil && report.Outcome == api.OutcomeRefused && s.Cluster.Status.ObservedGeneration >= s.Cluster.Generation
}

// refusals are what is refused of what was applied, as sentences. They are those of conditions, which are written before the report.
func (s snapshot) refusals() (all []string) {
	if s.applied == nil || s.applied.whole || s.nothingIsMade() {
		all = s.clusterRefusals()
	}
	for _, r := range s.Resources {
		if object := engine.ResourceObject(r); s.applied != nil && s.applied.resources[object] {
			all = append(all, stalledText(object, r.Common().Conditions)...)
		}
	}
	return all
}

// clusterRefusals are what is refused of the cluster and of what it consists of, as sentences.
func (s snapshot) clusterRefusals() (all []string) {
	for i := range s.Nodes {
		all = append(all, stalledText(engine.NodeObject(s.Nodes[i].Name), s.Nodes[i].Status.Conditions)...)
	}
	for _, r := range engine.OfKind[*api.DriveGroup](s.Resources) {
		all = append(all, stalledText(engine.ResourceObject(r), r.Status.Conditions)...)
	}
	if c := s.condition(api.ClusterAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return []string{c.Message} // it names nodes, too, where all of the cluster is refused
	}
	if c := s.condition(api.ClusterReady); c != nil && c.Reason == engine.ReasonRefused && len(all) == 0 {
		return []string{c.Message}
	}
	return all
}

// stalledText says why an object is stalled, if it is.
func stalledText(object string, conditions []metav1.Condition) []string {
	if c := meta.FindStatusCondition(conditions, api.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return []string{object + ": " + c.Message}
	}
	return nil
}

// beside says whether something is a resource of the cluster that was not applied.
func (s snapshot) beside(object string) bool {
	return s.applied != nil && !s.applied.resources[object] && engine.OfResource(object)
}

// refusedBeside are the refusals of resources that were not applied, as sentences.
func (s snapshot) refusedBeside() (all []string) {
	if s.Cluster == nil || s.Cluster.Status.Report == nil {
		return nil
	}
	for _, d := range s.Cluster.Status.Report.Decisions {
		if d.Verdict == api.VerdictRefuse && s.beside(d.Object) {
			all = append(all, d.Object+": "+d.Message)
		}
	}
	return all
}

// nodeBehind says whether the engine has not yet seen the newest spec of one of the nodes.
func (s snapshot) nodeBehind() bool {
	return slices.ContainsFunc(s.Nodes, func(n api.StorageNode) bool {
		return n.Status.ObservedGeneration < n.Generation
	})
}
