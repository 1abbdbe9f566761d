package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Labels that tools of Kubernetes group objects by.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// ManagedBy is the value of LabelManagedBy on everything that Holdfast makes.
const ManagedBy = "holdfast"

// Components of what Holdfast makes for a cluster, beside its daemons, whose component is their
// type.
const (
	ComponentSecret = "secret"
	ComponentStatus = "status"
	ComponentEvent  = "event"
)

// LabelsFor are the labels of an object that Holdfast makes for a cluster.
func LabelsFor(cluster *api.StorageCluster, component string) map[string]string {
	labels := map[string]string{
		api.LabelCluster: cluster.Name, LabelInstance: cluster.Name, LabelComponent: component, LabelManagedBy: ManagedBy,
	}
	if cluster.Spec.Type != "" {
		labels[LabelName] = string(cluster.Spec.Type)
	}
	return labels
}

// Owner is how a Daemon names its cluster. It does not hold up the cluster's deletion: the engine
// removes the Daemons in order, before its finalizer lets the cluster go
// (docs/decisions/2026-11-26-owner-references.md).
func Owner(cluster *api.StorageCluster) []metav1.OwnerReference {
	if cluster.UID == "" {
		return nil
	}
	controller := true
	return []metav1.OwnerReference{{
		APIVersion: api.GroupVersion.String(), Kind: KindCluster, Name: cluster.Name, UID: cluster.UID,
		Controller: &controller,
	}}
}
