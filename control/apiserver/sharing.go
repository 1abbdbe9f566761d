package apiserver

import (
	"cmp"
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

// sharingOptions makes storages whose watch caches hold what is the same in two objects, or in two versions of one, once. The library
// keeps each version of the last minutes as a whole, and of a daemon that comes up there are four, which differ in a word of its status;
// and most of what is said of one disk, and of who manages its fields, is said of each. It is for kinds whose objects are maps: those of
// custom resources.
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
		alike := sharedAttributes{attributes: attributes}
		return decorate(&shared, prefix, key, newObject, newList, alike.of, triggers, indexers)
	}
	return o, nil
}

const (
	// rememberedKeys is how many keys of maps are remembered at most. Longer ones than longestKey name one thing of one object, such as
	// who manages the fields of one disk.
	rememberedKeys, longestKey = 4096, 48
)

// sharingCodec is a codec that lets what it decodes share with the version that it decoded before, or, of an object that is new to it, with
// the object that it decoded last. It does so where it makes the object itself, which watches ask for: what they get goes into a cache,
// and nobody writes to it.
type sharingCodec struct {
	runtime.Codec

	mu sync.Mutex
	// versions are the latest ones of objects, last is that of the object that was decoded last.
	versions lately[types.UID, seen]
	last     seen
	// keys are those of maps: the decoder makes a string of each key of each map.
	keys map[string]string
}

// seen is what can be shared of a version of an object. The library writes its number into the object's metadata, also while
// another one is decoded, so of that these are the parts.
type seen struct{ object, metadata map[string]any }

// Decode decodes an object.
func (s *sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, kind, err := s.Codec.Decode(data, defaults, into)
	if u, ok := o.(*unstructured.Unstructured); ok && err == nil && into == nil {
		s.share(u)
	}
	return o, kind, err
}

// share makes an object share with its last version. Its metadata it has for itself, but for its parts.
func (s *sharingCodec) share(u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := u.GetUID()
	was, known := s.versions.get(id)
	if !known {
		was = s.last
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	if metadata != nil {
		metadata, _ = s.sharedMap(was.metadata, metadata)
		u.Object["metadata"] = metadata
	}
	for key, value := range u.Object {
		if key != "metadata" {
			u.Object[key], _ = s.shared(was.object[key], value)
		}
	}
	u.Object = s.keyed(u.Object)
	s.last = seen{u.Object, partsOf(metadata)}
	s.versions.put(id, s.last)
}

// partsOf are the lists and maps of an object's metadata, such as its labels.
func partsOf(metadata map[string]any) map[string]any {
	parts := map[string]any{}
	for key, value := range metadata {
		if hasParts(value) {
			parts[key] = value
		}
	}
	return parts
}

func hasParts(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// shared returns was in the place of a value that is equal to it, and says whether it is. In one that differs, what is equal is
// replaced.
func (s *sharingCodec) shared(was, is any) (any, bool) {
	var equal bool
	switch value := is.(type) {
	case map[string]any:
		before, ok := was.(map[string]any)
		is, equal = s.sharedMap(before, value)
		equal = equal && ok
	case []any:
		before, ok := was.([]any)
		equal = s.sharedList(before, value) && ok
	default: // a string, a number, a truth value or nil
		equal = !hasParts(was) && was == is
	}
	if equal {
		return was, true
	}
	return is, false
}

// sharedMap lets the values of a map share with those of another, and says whether the two are equal. One that the other has not, such as
// one more disk of a host, shares with what is beside it. Each list and each map is looked into once, before anybody else can see it: what
// was put in the place of one is in use.
func (s *sharingCodec) sharedMap(was, is map[string]any) (map[string]any, bool) {
	equal := len(was) == len(is)
	beside := anyOf(was)
	for key, value := range is {
		before, ok := was[key]
		if !ok {
			before = beside
		}
		value, same := s.shared(before, value)
		equal = equal && ok && same
		is[key] = value
		if hasParts(value) {
			beside = value
		}
	}
	if equal {
		return is, true
	}
	return s.keyed(is), false
}

// keyed is a map with keys that other maps have, too. A map keeps the key that it got first.
func (s *sharingCodec) keyed(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[s.key(key)] = value
	}
	return out
}

func (s *sharingCodec) key(key string) string {
	if known, ok := s.keys[key]; ok || len(key) > longestKey {
		return cmp.Or(known, key)
	}
	if s.keys == nil || len(s.keys) >= rememberedKeys {
		s.keys = map[string]string{}
	}
	s.keys[key] = key
	return key
}

// anyOf is a value of a map that has parts, or nil.
func anyOf(m map[string]any) any {
	for _, value := range m {
		if hasParts(value) {
			return value
		}
	}
	return nil
}

// sharedList does the same for a list.
func (s *sharingCodec) sharedList(was, is []any) bool {
	equal := len(was) == len(is)
	var beside any
	for i, value := range is {
		before := beside
		if i < len(was) {
			before = was[i]
		}
		value, same := s.shared(before, value)
		equal = equal && same && i < len(was)
		is[i] = value
		if hasParts(value) {
			beside = value
		}
	}
	return equal
}
