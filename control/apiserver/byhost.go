package apiserver

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// hostField is the field by which each agent selects what is its own.
const hostField = "spec.host"

// ofHosts are the kinds that agents select so.
var ofHosts = map[schema.GroupResource]bool{
	{Group: api.Group, Resource: "daemons"}: true, {Group: api.Group, Resource: "actions"}: true,
}

// hostOptions makes storages of the kinds in ofHosts that know their objects by host. Without that, each change of one would be
// looked at on behalf of each agent that watches, and each agent's list would go through all there are: of a thousand agents,
// the slower ones lose their watches when much changes, and list anew.
type hostOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of one resource.
func (h hostOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := h.RESTOptionsGetter.GetRESTOptions(gr, example)
	if err != nil || !ofHosts[gr] {
		return o, err
	}
	decorate := o.Decorator
	o.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attributes storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		triggers := storage.IndexerFuncs{hostField: hostOf}
		indexes := &cache.Indexers{storage.FieldIndex(hostField): func(o any) ([]string, error) {
			object, _ := o.(runtime.Object)
			return []string{hostOf(object)}, nil
		}}
		return decorate(config, prefix, key, newObject, newList, attributes, triggers, indexes)
	}
	return around(o, func(s storage.Interface) storage.Interface { return &hostStorage{s} }), nil
}

// hostOf is the value of hostField. An object that is not as it should be is of no host.
func hostOf(o runtime.Object) string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	host, _, _ := unstructured.NestedString(u.Object, "spec", "host")
	return host
}

// hostStorage lets lists and watches that select a host use the index.
type hostStorage struct{ storage.Interface }

// Watch follows what is selected.
func (s *hostStorage) Watch(ctx context.Context, key string, o storage.ListOptions) (watch.Interface, error) {
	o.Predicate.IndexFields = append(slices.Clip(o.Predicate.IndexFields), hostField)
	return s.Interface.Watch(ctx, key, o)
}

// GetList reads what is selected.
func (s *hostStorage) GetList(ctx context.Context, key string, o storage.ListOptions, list runtime.Object) error {
	o.Predicate.IndexFields = append(slices.Clip(o.Predicate.IndexFields), hostField)
	return s.Interface.GetList(ctx, key, o, list)
}
