package classes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// LabelVolumes is on Pools, Filesystems and StorageClusters that PersistentVolumes lie in. The policy
// holdfast-keep-volumes refuses to delete them while their deletion would destroy the data.
const LabelVolumes = "holdfast.io/volumes"

// Mark is an object that gets or loses LabelVolumes.
type Mark struct {
	Object client.Object
	InUse  bool
}

// mark has the label follow the volumes.
func (d *decision) mark() {
	clusters, used := map[types.NamespacedName]bool{}, map[string]bool{}
	bySecret := map[types.NamespacedName]*source{}
	for _, s := range d.sources {
		for _, u := range s.users {
			bySecret[client.ObjectKeyFromObject(s.client(u))] = s
		}
	}
	for i := range d.Volumes {
		if s := d.sourceOfVolume(&d.Volumes[i], bySecret); s != nil {
			used[s.id()] = true
			clusters[types.NamespacedName{Namespace: s.namespace, Name: s.cluster}] = true
		}
	}
	for i := range d.Pools {
		d.markOne(&d.Pools[i], used["Pool/"+client.ObjectKeyFromObject(&d.Pools[i]).String()])
	}
	for i := range d.Filesystems {
		d.markOne(&d.Filesystems[i], used["Filesystem/"+client.ObjectKeyFromObject(&d.Filesystems[i]).String()])
	}
	for i := range d.Clusters {
		d.markOne(&d.Clusters[i], clusters[client.ObjectKeyFromObject(&d.Clusters[i])])
	}
}

func (d *decision) markOne(o client.Object, inUse bool) {
	if _, has := o.GetLabels()[LabelVolumes]; has != inUse && o.GetDeletionTimestamp() == nil {
		d.Marks = append(d.Marks, Mark{o, inUse})
	}
}

// sourceOfVolume is what a volume lies in; nil where it is none of Holdfast's classes.
func (d *decision) sourceOfVolume(v *corev1.PersistentVolume, bySecret map[types.NamespacedName]*source) *source {
	if v.Spec.CSI == nil || v.Spec.CSI.Driver != backend.DriverName {
		return nil
	}
	for _, key := range secretsOf(v) {
		if s := bySecret[key]; s != nil {
			return s
		}
	}
	for _, s := range d.sources {
		if len(s.users) == 0 && isClassOf(v.Spec.StorageClassName, s.id()) {
			return s
		}
	}
	return nil
}

// isClassOf says whether a class may have been made for the source with an id, by its name.
func isClassOf(class, id string) bool {
	name := className(id)
	return class == name || strings.HasPrefix(class, name+"-")
}
