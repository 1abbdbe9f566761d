package sim

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Object is a resource of package api.
type Object interface {
	metav1.Object
	runtime.Object
}

// id says which object is meant.
type id struct{ kind, namespace, name string }

func idOf(o Object) id { return id{kindOf(o), o.GetNamespace(), o.GetName()} }

func (i id) notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: api.Group, Resource: i.kind}, i.name)
}

func kindOf(o Object) string { return reflect.TypeOf(o).Elem().Name() }

func clone[T Object](o T) T { return o.DeepCopyObject().(T) }

// field is a part of an object that all kinds but few have, such as its Spec; not valid where it has none.
func field(o Object, name string) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName(name) }

// specOf returns what an administrator writes; a change of it counts as a new generation.
func specOf(o Object) any {
	if spec := field(o, "Spec"); spec.IsValid() {
		return spec.Addr().Interface()
	}
	return nil
}

// keepStatus gives to an object the status of another: writing a spec does not change a status.
func keepStatus(to, from Object) {
	if status := field(to, "Status"); status.IsValid() {
		status.Set(field(from, "Status"))
	}
}

// assign copies what is stored into the caller's object.
func assign(to, from Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(clone(from)).Elem())
}
