package why

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (w *World) resource(r api.Resource) Answer {
	d, of := w.decisionOn(engine.ResourceObject(r))
	kind, s := strings.ToLower(r.ResourceKind()), r.Common()
	accepted := meta.FindStatusCondition(s.Conditions, api.ResourceAccepted)
	if a, held := heldByOther(kind, r); held {
		return a
	}
	switch {
	case !w.hasCluster(r.ClusterName()):
		return answered(fmt.Sprintf("StorageCluster %s does not exist in the %s's namespace, so it is not made.", r.ClusterName(), kind),
			fmt.Sprintf("declare the cluster, or correct spec.cluster of the %s: 'holdfast get storageclusters' lists the clusters.", kind))

	case d != nil && s.State == "":
		return decided(join("The "+kind+" is not made", d.Message), d, of)
	case s.ObservedGeneration < r.GetGeneration():
		return answered(fmt.Sprintf("The leader has not observed the %s's newest spec yet.", kind),
			fmt.Sprintf("check with 'holdfast status %s' that its cluster is active.", r.ClusterName()))
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		reason := refusedFor(s.Conditions, accepted)
		if reason == api.ReasonLost {
			return answered(join("The "+kind+" is "+string(s.State), accepted.Message),
				"restore the data first if it is needed; the command named above makes a new, empty one.").
				because(reason)
		}
		return answered(join("The "+kind+" cannot be made as declared", accepted.Message),
			"correct the spec, and apply it again.").because(reason)
	}
	text := fmt.Sprintf("The %s is %s", kind, s.State)
	switch {
	case s.Reason != "":
		return answered(join(text, s.Message), sentence(s.Next)).because(s.Reason)
	case d != nil:
		return decided(join(text, d.Message), d, of)
	case s.Message != "":
		return answered(join(text, s.Message), "")
	}
	if v, ok := r.(*api.Volume); ok && v.Status.Source != "" {
		text += ", and clients mount " + v.Status.Source
	}
	return answered(sentence(text), "")
}

// refusedFor is why a resource is not accepted, as precisely as its conditions say.
func refusedFor(conditions []metav1.Condition, accepted *metav1.Condition) api.Reason {
	if c := meta.FindStatusCondition(conditions, api.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return api.Reason(c.Reason)
	}
	return api.Reason(accepted.Reason)
}

func (w *World) hasCluster(name string) bool {
	for i := range w.Clusters {
		if w.Clusters[i].Name == name {
			return true
		}
	}
	return false
}
