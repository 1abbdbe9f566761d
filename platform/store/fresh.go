package store

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// freshTimeout bounds how long a View waits for the caches. They lag behind by milliseconds;
// seconds mean a broken watch.
const freshTimeout = 5 * time.Second

// freshness knows how far the cache of each kind has come, and how far the Store's own writes have.
// The API server numbers all writes of a kind in their order, and watches deliver them in that
// order.
type freshness struct {
	mu     sync.Mutex
	seen   map[string]uint64
	wanted map[string]uint64
	// deleted are objects that the Store deleted, of which the API does not tell a version.
	deleted map[objectKey]removal
	// moved is closed and made anew when seen or deleted changed.
	moved chan struct{}
}

type objectKey struct {
	kind string
	types.NamespacedName
}

func newFreshness() *freshness {
	return &freshness{
		seen: map[string]uint64{}, wanted: map[string]uint64{}, deleted: map[objectKey]removal{}, moved: make(chan struct{}),
	}
}

// removal is what shall be seen of an object that was deleted: that it is marked, or that it is
// gone.
type removal struct {
	uid  types.UID
	gone bool
}

// saw notes that the cache holds this version of an object, or, when it is gone, that it holds it
// no more.
func (f *freshness) saw(kind string, o client.Object, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[kind] = max(f.seen[kind], version(o))
	k := objectKey{kind, client.ObjectKeyFromObject(o)}
	if r, ok := f.deleted[k]; ok && (gone || r.uid != o.GetUID() || !r.gone && o.GetDeletionTimestamp() != nil) {
		delete(f.deleted, k)
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// wrote notes a write of the Store.
func (f *freshness) wrote(kind string, o client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[kind] = max(f.wanted[kind], version(o))
}

// removing notes, before the request, that the Store deletes an object that the cache still shows.
// gone says that nothing will keep the object.
func (f *freshness) removing(kind string, o client.Object, gone bool) (undo func()) {
	k := objectKey{kind, client.ObjectKeyFromObject(o)}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, again := f.deleted[k]
	f.deleted[k] = removal{o.GetUID(), gone}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		// A deletion that finds nothing takes back nothing of an earlier one, which the cache may
		// not have seen yet.
		if _, awaited := f.deleted[k]; awaited && again {
			f.deleted[k] = before
			return
		}
		delete(f.deleted, k)
	}
}

// wait returns when the caches have seen all writes that were noted before.
func (f *freshness) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	for {
		behind, moved := f.behind()
		if behind == "" {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			// What is waited for may never come, as when an object was made and removed while the
			// watch was broken. The next View must not wait for it again.
			f.forget()
			return fmt.Errorf("the cache of %s does not have this server's own writes yet: %w", behind,
				context.Cause(ctx))
		}
	}
}

func (f *freshness) behind() (kind string, moved <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, v := range f.wanted {
		if f.seen[k] < v {
			return k, f.moved
		}
	}
	for k := range f.deleted {
		return k.kind, f.moved
	}
	return "", f.moved
}

func (f *freshness) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.wanted)
	clear(f.deleted)
}

// version returns an object's resource version, which is a number by the API's own word (Kubernetes
// API Concepts, Resource versions).
func version(o client.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
