package apiserver

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// uncached are the kinds that are written much and read seldom: events people read, and follow one at a time; of Leases, which agents
// renew all the time, the leader alone hears, and followers of one of them. Of these no decoded copy is kept in memory, nor of each change of the last minutes; they are
// read from etcd, as Kubernetes does with its Events.
var uncached = map[schema.GroupResource]bool{
	{Group: api.Group, Resource: "clusterevents"}: true, corev1.Resource("events"): true, coordinationv1.Resource("leases"): true,
}

// uncachedOptions makes storages of the kinds in uncached without the library's watch cache.
type uncachedOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of one resource.
func (u uncachedOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := u.RESTOptionsGetter.GetRESTOptions(gr, example)
	if uncached[gr] {
		o.Decorator = generic.UndecoratedStorage
	}
	return o, err
}
