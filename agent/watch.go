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

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// daemons holds the Daemons of this host as the server told them last. It tells the name of each that changes.
type daemons struct {
	host    string
	changed func(types.NamespacedName)
	// listed is told the names of all that there are, whenever the server has answered with a whole list.
	listed func()

	mu     sync.RWMutex
	byKey  map[types.NamespacedName]*api.Daemon
	synced bool
}

var _ cache.ReflectorStore = (*daemons)(nil)

// get returns a Daemon, which nobody writes to; nil when there is none. known is false before the server has answered.
func (s *daemons) get(key types.NamespacedName) (d *api.Daemon, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key], s.synced
}

// deleting lists the Daemons that are being deleted.
func (s *daemons) deleting() []*api.Daemon {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*api.Daemon
	for _, d := range s.byKey {
		if d.DeletionTimestamp != nil {
			out = append(out, d)
		}
	}
	return out
}

// Add implements cache.ReflectorStore.
func (s *daemons) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *daemons) Update(obj any) error {
	d, ok := obj.(*api.Daemon)
	if !ok {
		return fmt.Errorf("%T is no Daemon", obj)
	}
	// The server selects; a Daemon of another host must never be acted on all the same.
	if d.Spec.Host != s.host {
		return nil
	}
	key := client.ObjectKeyFromObject(d)
	s.mu.Lock()
	old := s.byKey[key]
	s.byKey[key] = d
	s.mu.Unlock()
	// A change of the status is the agent's own, and no news.
	if old == nil || generationOf(old) != generationOf(d) || (old.DeletionTimestamp == nil) != (d.DeletionTimestamp == nil) {
		s.changed(key)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *daemons) Delete(obj any) error {
	d, ok := obj.(*api.Daemon)
	if !ok {
		return fmt.Errorf("%T is no Daemon", obj)
	}
	key := client.ObjectKeyFromObject(d)
	s.mu.Lock()
	delete(s.byKey, key)
	s.mu.Unlock()
	s.changed(key)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *daemons) Replace(objs []any, _ string) error {
	fresh := map[types.NamespacedName]*api.Daemon{}
	for _, obj := range objs {
		d, ok := obj.(*api.Daemon)
		if !ok {
			return fmt.Errorf("%T is no Daemon", obj)
		}
		if d.Spec.Host == s.host {
			fresh[client.ObjectKeyFromObject(d)] = d
		}
	}
	s.mu.Lock()
	old := s.byKey
	s.byKey, s.synced = fresh, true
	s.mu.Unlock()
	for key := range fresh {
		delete(old, key)
		s.changed(key)
	}
	for key := range old {
		s.changed(key)
	}
	s.listed()
	return nil
}

// Resync implements cache.ReflectorStore; nothing is gained by doing work again that nobody asked for.
func (s *daemons) Resync() error { return nil }

// watchDaemons follows the Daemons of this host until ctx ends. It tries again, soon and then less often, while the server
// is away.
func (a *agent) watchDaemons(ctx context.Context) {
	r := cache.NewReflectorWithOptions(a.listWatch(ctx), &api.Daemon{}, a.work.daemons, cache.ReflectorOptions{
		Name:    "daemons of " + a.Name,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 6, Factor: 2, Jitter: 0.5},
	})
	r.RunWithContext(ctx)
}

// plainList asks for a list and then a watch. To stream the list, for which the reflector asks otherwise, gains nothing with
// the few objects of one host.
type plainList struct{}

// IsWatchListSemanticsUnSupported is what client-go looks for.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

func (a *agent) listWatch(ctx context.Context) cache.ListerWatcher {
	mine := client.MatchingFields{"spec.host": a.Name}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (kruntime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			// The reflector would take what the server has in its cache, and a server that was cut off from the others may have
			// missed a Daemon that runs here. Asked for no version in particular, it answers with what holds now, or not at all.
			opts.ResourceVersion = ""
			list := &api.DaemonList{}
			return list, a.client.List(ctx, list, mine, &client.ListOptions{Raw: &opts})
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (kwatch.Interface, error) {
			return a.client.Watch(ctx, &api.DaemonList{}, mine, &client.ListOptions{Raw: &opts})
		},
	}, plainList{})
}
