// Package kstatus says how an object is by kstatus (sigs.k8s.io/cli-utils), as Flux, Argo CD's users and 'kapp' see it,
// so that tests can ask it of the objects that Holdfast writes.
package kstatus

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What kstatus may say of an object.
const (
	Current     = string(status.CurrentStatus)
	InProgress  = string(status.InProgressStatus)
	Failed      = string(status.FailedStatus)
	Terminating = string(status.TerminatingStatus)
)

// Of returns what kstatus says of an object, and why.
func Of(t testing.TB, o runtime.Object) (is, why string) {
	t.Helper()
	result, err := status.Compute(Unstructured(t, o))
	if err != nil {
		t.Fatalf("kstatus of %T: %v", o, err)
	}
	return string(result.Status), result.Message
}

// Unstructured is an object as the API has it, with its kind.
func Unstructured(t testing.TB, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(gvk)
	return u
}
