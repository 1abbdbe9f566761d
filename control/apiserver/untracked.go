package apiserver

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// untracked are the kinds that Holdfast alone writes, each field by one writer: of them it is not kept who manages which field.
// That would be more than half of such an object, in etcd, in each cache and on each way, and most of the work of a write. Once
// somebody applies such an object on the server's side, the library keeps it for that object.
var untracked = map[schema.GroupResource]bool{
	{Group: api.Group, Resource: "daemons"}: true, {Group: api.Group, Resource: "clusterevents"}: true,
	{Group: api.Group, Resource: "storagestatuses"}: true, {Group: coordinationv1.GroupName, Resource: "leases"}: true,
}

// untrackedOptions makes storages of the kinds in untracked.
type untrackedOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of one resource.
func (u untrackedOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := u.RESTOptionsGetter.GetRESTOptions(gr, example)
	if err != nil || !untracked[gr] {
		return o, err
	}
	return around(o, func(s storage.Interface) storage.Interface { return &untrackedStorage{s} }), nil
}

// untrackedStorage stores new objects without their managed fields. The library keeps none of an object that has none
// (managedfields, NewSkipNonAppliedManager).
type untrackedStorage struct{ storage.Interface }

// Create stores a new object.
func (s *untrackedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return s.Interface.Create(ctx, key, obj, out, ttl)
}
