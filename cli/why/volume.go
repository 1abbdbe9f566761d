package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func (w *World) volume(v *api.Volume) Answer {
	d, of := w.decisionOn("volume/" + v.Name)
	accepted := meta.FindStatusCondition(v.Status.Conditions, api.VolumeAccepted)
	switch {
	case !w.hasCluster(v.Spec.Cluster):
		return Answer{fmt.Sprintf("There is no StorageCluster %s in the volume's namespace, so nobody makes it.", v.Spec.Cluster), "declare the cluster, or a volume in another one: 'holdfast get storageclusters'."}
	case d != nil && v.Status.State == "":
		return Answer{join("The volume is not made", d.Message), nextFor(d, of)}
	case v.Status.ObservedGeneration < v.Generation:
		return Answer{"The leader has not looked at the volume's newest spec yet.", fmt.Sprintf("is its cluster active? 'holdfast status %s' says.", v.Spec.Cluster)}
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		return Answer{join("The volume cannot be made as it is declared", accepted.Message), "change what it names, and apply it again."}
	}
	text := fmt.Sprintf("The volume is %s", v.Status.State)
	switch {
	case d != nil:
		return Answer{join(text, d.Message), nextFor(d, of)}
	case v.Status.Message != "":
		return Answer{join(text, v.Status.Message), ""}
	case v.Status.Source != "":
		text += ", and clients mount " + v.Status.Source
	}
	return Answer{sentence(text), ""}
}

func (w *World) hasCluster(name string) bool {
	for i := range w.Clusters {
		if w.Clusters[i].Name == name {
			return true
		}
	}
	return false
}
