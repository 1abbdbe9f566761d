package apiserver

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// sharedAttributes gives the versions of an object one set of labels and one of fields to be selected by, as long as these are equal: the library keeps
// them with each version that it keeps. Nobody writes to them.
type sharedAttributes struct {
	attributes storage.AttrFunc

	mu    sync.Mutex
	known lately[objectKey, attributes]
}

type objectKey struct{ namespace, name string }

type attributes struct {
	labels labels.Set
	fields fields.Set
}

// of implements storage.AttrFunc.
func (s *sharedAttributes) of(o runtime.Object) (labels.Set, fields.Set, error) {
	l, f, err := s.attributes(o)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := objectKey{f["metadata.namespace"], f["metadata.name"]}
	was, _ := s.known.get(key)
	if maps.Equal(l, was.labels) {
		l = was.labels
	}
	if maps.Equal(f, was.fields) {
		f = was.fields
	}
	s.known.put(key, attributes{l, f})
	return l, f, nil
}
