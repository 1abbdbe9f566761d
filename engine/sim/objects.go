package sim

import (
	"fmt"

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

func kindOf(o Object) string {
	switch o.(type) {
	case *api.Host:
		return "Host"
	case *api.StorageCluster:
		return "StorageCluster"
	case *api.StorageNode:
		return "StorageNode"
	case *api.StorageStatus:
		return "StorageStatus"
	case *api.Daemon:
		return "Daemon"
	case *api.Volume:
		return "Volume"
	case *api.Action:
		return "Action"
	case *api.ClusterEvent:
		return "ClusterEvent"
	default:
		panic(fmt.Sprintf("the simulator knows no %T", o))
	}
}

func clone[T Object](o T) T { return o.DeepCopyObject().(T) }

// specOf returns what an administrator writes; a change of it counts as a new generation.
func specOf(o Object) any {
	switch o := o.(type) {
	case *api.Host:
		return &o.Spec
	case *api.StorageCluster:
		return &o.Spec
	case *api.StorageNode:
		return &o.Spec
	case *api.Daemon:
		return &o.Spec
	case *api.Volume:
		return &o.Spec
	case *api.Action:
		return &o.Spec
	default:
		return nil
	}
}

// keepStatus gives to an object the status of another: writing a spec does not change a status.
func keepStatus(to, from Object) {
	switch to := to.(type) {
	case *api.Host:
		to.Status = from.(*api.Host).Status
	case *api.StorageCluster:
		to.Status = from.(*api.StorageCluster).Status
	case *api.StorageNode:
		to.Status = from.(*api.StorageNode).Status
	case *api.StorageStatus:
		to.Status = from.(*api.StorageStatus).Status
	case *api.Daemon:
		to.Status = from.(*api.Daemon).Status
	case *api.Volume:
		to.Status = from.(*api.Volume).Status
	case *api.Action:
		to.Status = from.(*api.Action).Status
	}
}
