package apiserver

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// sharingOptions makes storages whose watch caches hold what is the same in two versions of an object once. The library keeps each
// version of the last minutes as a whole, and of a daemon that comes up there are four, which differ in a word of its status. It is
// for kinds whose objects are maps: those of custom resources.
type sharingOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of one resource.
func (s sharingOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := s.RESTOptionsGetter.GetRESTOptions(gr, example)
	if err != nil {
		return o, err
	}
	decorate := o.Decorator
	o.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		shared := *config
		shared.Codec = &sharingCodec{Codec: config.Codec}
		return decorate(&shared, prefix, key, newObject, newList, attributes, triggers, indexers)
	}
	return o, nil
}

// rememberedObjects is how many objects are remembered at least, to share with their next version.
const rememberedObjects = 4096

// sharingCodec is a codec that lets what it decodes share with the version that it decoded before. It does so where it makes the
// object itself, which watches ask for: what they get goes into a cache, and nobody writes to it.
type sharingCodec struct {
	runtime.Codec

	mu sync.Mutex
	// recent are the latest versions of objects, older those of before; when recent is full, it takes the place of older.
	recent, older map[types.UID]map[string]any
}

// Decode decodes an object.
func (s *sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, kind, err := s.Codec.Decode(data, defaults, into)
	if u, ok := o.(*unstructured.Unstructured); ok && err == nil && into == nil {
		s.share(u)
	}
	return o, kind, err
}

// share makes an object share with its last version. Its metadata it has for itself: the library writes the version into it.
func (s *sharingCodec) share(u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := u.GetUID()
	was := s.recent[id]
	if was == nil {
		was = s.older[id]
	}
	for key, value := range u.Object {
		if key != "metadata" {
			u.Object[key], _ = shared(was[key], value)
		}
	}
	if len(s.recent) >= rememberedObjects {
		s.recent, s.older = nil, s.recent
	}
	if s.recent == nil {
		s.recent = map[types.UID]map[string]any{}
	}
	s.recent[id] = u.Object
}

// shared returns was in the place of a value that is equal to it, and says whether it is. In one that differs, what is equal is
// replaced.
func shared(was, is any) (any, bool) {
	equal := false
	switch value := is.(type) {
	case map[string]any:
		before, ok := was.(map[string]any)
		equal = ok && sharedMap(before, value)
	case []any:
		before, ok := was.([]any)
		equal = ok && sharedList(before, value)
	default: // a string, a number, a truth value or nil
		switch was.(type) {
		case map[string]any, []any:
		default:
			equal = was == is
		}
	}
	if equal {
		return was, true
	}
	return is, false
}

func sharedMap(was, is map[string]any) bool {
	equal := len(was) == len(is)
	for key, value := range is {
		before, ok := was[key]
		same := false
		if ok {
			is[key], same = shared(before, value)
		}
		equal = equal && same
	}
	return equal
}

func sharedList(was, is []any) bool {
	equal := len(was) == len(is)
	for i := range min(len(was), len(is)) {
		var same bool
		is[i], same = shared(was[i], is[i])
		equal = equal && same
	}
	return equal
}
