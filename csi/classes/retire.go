package classes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// retire removes what is for nothing any more: classes first, and Clients and Secrets when no volume
// needs their keys.
func (d *decision) retire() {
	for i := range d.Classes {
		c := &d.Classes[i]
		if isOurs(c) && c.DeletionTimestamp == nil && !d.needsClass(c) {
			d.Remove = append(d.Remove, c)
		}
	}
	needed := d.neededSecrets()
	for i := range d.Clients {
		c := &d.Clients[i]
		id := c.Annotations[AnnotationOf]
		if isOurs(c) && c.DeletionTimestamp == nil && !needed[client.ObjectKeyFromObject(c)] && !d.isUsed(id) {
			d.Remove = append(d.Remove, c)
		}
	}
	for i := range d.Secrets {
		s := &d.Secrets[i]
		if key := client.ObjectKeyFromObject(s); d.clients[key] == nil && !needed[key] {
			d.Remove = append(d.Remove, s)
		}
	}
}

// needsClass says whether a class stays: its source is there, and it is the source's only one, the
// one that the source needs, or the one that some claim names.
func (d *decision) needsClass(c *storagev1.StorageClass) bool {
	s := d.sourceOf(c.Annotations[AnnotationOf])
	if s == nil {
		return false
	}
	if len(d.classesOf(s.id())) == 1 || same(c, d.classOf(s)) {
		return true
	}
	return d.isClaimed(func(claim *corev1.PersistentVolumeClaimSpec) bool {
		return ptr.Deref(claim.StorageClassName, "") == c.Name
	})
}

// isUsed says whether there is a source, a class, or a claim that may become a volume. No volume
// needs keys otherwise.
func (d *decision) isUsed(id string) bool {
	if !isID(id) || d.sourceOf(id) != nil || len(d.classesOf(id)) > 0 {
		return true
	}
	return d.isClaimed(func(claim *corev1.PersistentVolumeClaimSpec) bool {
		return claim.VolumeName == "" && isClassOf(ptr.Deref(claim.StorageClassName, ""), id)
	})
}

// isClaimed says whether there is such a claim. Claims that are not known may be any.
func (d *decision) isClaimed(is func(*corev1.PersistentVolumeClaimSpec) bool) bool {
	if !d.ClaimsKnown {
		d.NeedsClaims = true
		return true
	}
	return slices.ContainsFunc(d.Claims, func(c corev1.PersistentVolumeClaim) bool { return is(&c.Spec) })
}

// neededSecrets are the Secrets that volumes of the driver name.
func (d *decision) neededSecrets() map[types.NamespacedName]bool {
	needed := map[types.NamespacedName]bool{}
	for i := range d.Volumes {
		for _, key := range secretsOf(&d.Volumes[i]) {
			needed[key] = true
		}
	}
	return needed
}

// The annotations by which a volume names the Secret that deletes it.
const (
	deletionSecret          = "volume.kubernetes.io/provisioner-deletion-secret-name"
	deletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
)

// secretsOf are the Secrets that a volume of the driver names.
func secretsOf(v *corev1.PersistentVolume) (all []types.NamespacedName) {
	csi := v.Spec.CSI
	if csi == nil || csi.Driver != backend.DriverName {
		return nil
	}
	for _, ref := range []*corev1.SecretReference{
		csi.ControllerPublishSecretRef, csi.ControllerExpandSecretRef, csi.NodeStageSecretRef,
		csi.NodePublishSecretRef, csi.NodeExpandSecretRef,
	} {
		if ref != nil {
			all = append(all, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	if name := v.Annotations[deletionSecret]; name != "" {
		all = append(all, types.NamespacedName{Namespace: v.Annotations[deletionSecretNamespace], Name: name})
	}
	return all
}
