package classes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// matters says whether a change of an object can change what there should be. Most changes are
// reports of storage systems.
func matters(was, is any) bool {
	switch is := is.(type) {
	case *api.StorageStatus:
		return was.(*api.StorageStatus).Status.Status != is.Status.Status
	case *api.Client:
		return was.(*api.Client).ResourceVersion != is.ResourceVersion
	case api.Resource:
		was := was.(api.Resource)
		return declaredOtherwise(was, is) || was.Common().State != is.Common().State
	case *api.StorageCluster:
		return declaredOtherwise(was.(*api.StorageCluster), is)
	case *corev1.Secret:
		return was.(*corev1.Secret).ResourceVersion != is.ResourceVersion
	case *storagev1.StorageClass:
		return was.(*storagev1.StorageClass).ResourceVersion != is.ResourceVersion
	}
	return false
}

// declaredOtherwise says whether people have changed an object. Its deletion changes the generation, too.
func declaredOtherwise(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetAnnotations(), is.GetAnnotations()) ||
		!maps.Equal(was.GetLabels(), is.GetLabels())
}
