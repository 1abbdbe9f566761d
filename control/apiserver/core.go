package apiserver

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/holdfast-storage/holdfast/control/events"
	"github.com/holdfast-storage/holdfast/control/reviews"
)

// coreScheme knows the few kinds of Kubernetes itself that Holdfast serves. Each Go type is registered as the external and
// as the internal version, so that nothing has to be converted.
var coreScheme = newCoreScheme()

var coreCodecs = serializer.NewCodecFactory(coreScheme)

func newCoreScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	addBoth(s, corev1.SchemeGroupVersion,
		&corev1.Namespace{}, &corev1.NamespaceList{},
		&corev1.Secret{}, &corev1.SecretList{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{},
		&corev1.Event{}, &corev1.EventList{})
	addBoth(s, coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	addBoth(s, eventsv1.SchemeGroupVersion, &eventsv1.Event{}, &eventsv1.EventList{})
	for group, types := range reviews.Types() {
		addBoth(s, schema.GroupVersion{Group: group, Version: "v1"}, types...)
	}
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	s.AddTypeDefaultingFunc(&corev1.Secret{}, func(obj any) {
		if secret := obj.(*corev1.Secret); secret.Type == "" {
			secret.Type = corev1.SecretTypeOpaque
		}
	})
	as := func(label string) string { return label }
	allowFields(s, corev1.SchemeGroupVersion.WithKind("Event"), events.Fields(&corev1.Event{}), as)
	allowFields(s, eventsv1.SchemeGroupVersion.WithKind("Event"), events.Fields(&corev1.Event{}), events.ModernField)
	allowFields(s, corev1.SchemeGroupVersion.WithKind("Secret"), secretFields(&corev1.Secret{}), as)
	return s
}

func addBoth(s *runtime.Scheme, gv schema.GroupVersion, types ...runtime.Object) {
	s.AddKnownTypes(gv, types...)
	s.AddKnownTypes(schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}, types...)
	metav1.AddToGroupVersion(s, gv)
	utilruntime.Must(s.SetVersionPriority(gv))
}

// allowFields says which fields of a kind field selectors may name, and which of the known ones they mean.
func allowFields(s *runtime.Scheme, kind schema.GroupVersionKind, known fields.Set, means func(string) string) {
	utilruntime.Must(s.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) {
		if field := means(label); known.Has(field) || field == "metadata.name" || field == "metadata.namespace" {
			return field, value, nil
		}
		return "", "", fmt.Errorf("%s cannot be selected by the field %q", kind.Kind, label)
	}))
}

func secretFields(secret *corev1.Secret) fields.Set {
	return fields.Set{"type": string(secret.Type)}
}
