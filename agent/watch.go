package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mine holds the objects of one kind that belong to this host, as the server told them last. It is safe for concurrent use.
type mine[T client.Object] struct {
	// belongs says whether an object is this host's. The server selects; another host's must never be acted on all the same.
	belongs func(T) bool
	// changed is told of each object that came, is not what it was, or is gone, as it was and as it is: nil where there is none.
	// With a whole list, everything has come.
	changed func(key types.NamespacedName, was, is T)
	// listed is called whenever the server has answered with a whole list.
	listed func()

	mu     sync.RWMutex
	byKey  map[types.NamespacedName]T
	synced bool
}

var _ cache.ReflectorStore = (*mine[client.Object])(nil)

// get returns an object, which nobody writes to; nil when there is none. known is false before the server has answered.
func (s *mine[T]) get(key types.NamespacedName) (is T, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key], s.synced
}

// all lists the objects, in no order.
func (s *mine[T]) all() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]T, 0, len(s.byKey))
	for _, is := range s.byKey {
		out = append(out, is)
	}
	return out
}

// whole is all; known is false before the server has answered.
func (s *mine[T]) whole() (all []T, known bool) {
	_, known = s.get(types.NamespacedName{})
	return s.all(), known
}

// Add implements cache.ReflectorStore.
func (s *mine[T]) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *mine[T]) Update(obj any) error {
	is, err := as[T](obj)
	if err != nil || !s.belongs(is) {
		return err
	}
	key := client.ObjectKeyFromObject(is)
	s.mu.Lock()
	was := s.byKey[key]
	if s.byKey == nil {
		s.byKey = map[types.NamespacedName]T{}
	}
	s.byKey[key] = is
	s.mu.Unlock()
	s.changed(key, was, is)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *mine[T]) Delete(obj any) error {
	gone, err := as[T](obj)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(gone)
	s.mu.Lock()
	delete(s.byKey, key)
	s.mu.Unlock()
	var none T
	s.changed(key, gone, none)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *mine[T]) Replace(objs []any, _ string) error {
	fresh := map[types.NamespacedName]T{}
	for _, obj := range objs {
		is, err := as[T](obj)
		if err != nil {
			return err
		}
		if s.belongs(is) {
			fresh[client.ObjectKeyFromObject(is)] = is
		}
	}
	s.mu.Lock()
	old := s.byKey
	s.byKey, s.synced = fresh, true
	s.mu.Unlock()
	s.replaced(old, objs)
	return nil
}

// replaced tells what came with a list, and what went with it.
func (s *mine[T]) replaced(old map[types.NamespacedName]T, objs []any) {
	var none T
	for _, obj := range objs {
		is := obj.(T)
		if key := client.ObjectKeyFromObject(is); s.belongs(is) {
			delete(old, key)
			s.changed(key, none, is)
		}
	}
	for key, was := range old {
		s.changed(key, was, none)
	}
	s.listed()
}

// Resync implements cache.ReflectorStore; nothing is gained by doing work again that nobody asked for.
func (s *mine[T]) Resync() error { return nil }

func as[T client.Object](obj any) (T, error) {
	is, ok := obj.(T)
	if !ok {
		return is, fmt.Errorf("%T is no %T", obj, is)
	}
	return is, nil
}

// follow keeps a store up to date until ctx ends. It tries again, soon and then less often, while the server is away. empty
// returns an empty list of the kind.
func follow[T client.Object](ctx context.Context, a *agent, store *mine[T], kind T, empty func() client.ObjectList) {
	ofHost := client.MatchingFields{"spec.host": a.Name}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (kruntime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			// The reflector would take what the server has in its cache, and a server that was cut off from the others may have
			// missed a Daemon that runs here. Asked for no version in particular, it answers with what holds now, or not at all.
			opts.ResourceVersion = ""
			list := empty()
			return list, a.client.List(ctx, list, ofHost, &client.ListOptions{Raw: &opts})
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (kwatch.Interface, error) {
			return a.client.Watch(ctx, empty(), ofHost, &client.ListOptions{Raw: &opts})
		},
	}, plainList{})
	cache.NewReflectorWithOptions(lw, kind, store, cache.ReflectorOptions{
		Name:    fmt.Sprintf("%T of %s", kind, a.Name),
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 6, Factor: 2, Jitter: 0.5},
	}).RunWithContext(ctx)
}

// plainList asks for a list and then a watch. To stream the list, for which the reflector asks otherwise, gains nothing with
// the few objects of one host.
type plainList struct{}

// IsWatchListSemanticsUnSupported is what client-go looks for.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }
