package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// watcher keeps a copy of the objects of one namespace, and of the hosts, that progress is told from.
type watcher struct {
	cache cache.Cache
	// changed holds a token whenever something changed since it was last received from.
	changed chan struct{}
}

// watchNamespace starts a watcher; it ends with ctx. Who may not read some of it is told so: the cache would ask again for ever.
func (g *globals) watchNamespace(ctx context.Context, namespace string) (*watcher, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	first, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	c, err := cache.New(config, cache.Options{
		Scheme:            newScheme(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&api.Action{}: {Namespaces: map[string]cache.Config{namespace: {}, api.SystemNamespace: {}}}},
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				refuse(err)
			}
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	w := &watcher{cache: c, changed: make(chan struct{}, 1)}
	kinds := []client.Object{&api.StorageCluster{}, &api.StorageStatus{}, &api.StorageNode{}, &api.Daemon{}, &api.Host{}, &api.Action{}}
	for _, list := range api.ResourceLists() {
		kinds = append(kinds, list.NewResource())
	}
	for _, kind := range kinds {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("while starting to watch: %w", err)
		}
		if _, err := informer.AddEventHandler(w.handler()); err != nil {
			return nil, fmt.Errorf("while starting to watch: %w", err)
		}
	}
	go c.Start(ctx) //nolint:errcheck // it returns an error only when it is started twice
	if !c.WaitForCacheSync(first) {
		return nil, fmt.Errorf("while reading the first state from %s: %w", config.Host, context.Cause(first))
	}
	return w, nil
}

func (w *watcher) handler() toolscache.ResourceEventHandler {
	signal := func() {
		select {
		case w.changed <- struct{}{}:
		default: // a token is there already
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	}
}

// snapshot reads what there is to tell of a cluster now.
func (w *watcher) snapshot(ctx context.Context, key types.NamespacedName) (snapshot, error) {
	return readSnapshot(ctx, w.cache, key)
}

func readSnapshot(ctx context.Context, r client.Reader, key types.NamespacedName) (snapshot, error) {
	var s snapshot
	cluster, status := &api.StorageCluster{}, &api.StorageStatus{}
	if err := r.Get(ctx, key, cluster); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
	} else if err == nil {
		s.Cluster = cluster
	}
	if err := r.Get(ctx, key, status); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("while reading storagestatus/%s: %w", key.Name, err)
	} else if err == nil {
		s.Status = status
	}
	var err error
	if s.Daemons, err = readDaemons(ctx, r, key); err != nil {
		return s, err
	}
	var hosts api.HostList
	if err := r.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("while reading hosts: %w", err)
	}
	s.silent = silentTexts(hosts.Items, time.Now())
	resources, err := store.ReadResources(ctx, r, client.InNamespace(key.Namespace))
	if err != nil {
		return s, err
	}
	s.Resources = engine.ResourcesOf(resources, key)
	if s.Nodes, err = readNodes(ctx, r, key, s.Cluster); err != nil {
		return s, err
	}
	s.actions, err = readActions(ctx, r, key, why.HostsOf(s.Nodes, s.Daemons))
	return s, err
}

// readActions returns what is under way with a cluster. Actions on hosts lie in a namespace of their own.
func readActions(ctx context.Context, r client.Reader, key types.NamespacedName, host func(string) bool) ([]*api.Action, error) {
	var all []api.Action
	for _, namespace := range slices.Compact([]string{key.Namespace, api.SystemNamespace}) {
		var list api.ActionList
		if err := r.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("while reading actions: %w", err)
		}
		all = append(all, list.Items...)
	}
	return why.Open(all, why.OfCluster(key.Namespace, key.Name, host)), nil
}

func readDaemons(ctx context.Context, r client.Reader, key types.NamespacedName) ([]api.Daemon, error) {
	var list api.DaemonList
	if err := r.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("while reading daemons: %w", err)
	}
	daemons := slices.DeleteFunc(list.Items, func(d api.Daemon) bool { return d.Spec.Cluster != key.Name })
	slices.SortFunc(daemons, func(a, b api.Daemon) int { return cmp.Compare(a.Name, b.Name) })
	return daemons, nil
}

// readNodes returns the nodes that belong to the cluster. Of a node that names no cluster where there are several of its type
// the engine says nothing, so nobody may wait for its word.
func readNodes(ctx context.Context, r client.Reader, key types.NamespacedName, cluster *api.StorageCluster) ([]api.StorageNode, error) {
	if cluster == nil {
		return nil, nil
	}
	var list api.StorageNodeList
	if err := r.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("while reading storagenodes: %w", err)
	}
	var clusters api.StorageClusterList
	if err := r.List(ctx, &clusters, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("while reading storageclusters: %w", err)
	}
	nodes := slices.DeleteFunc(list.Items, func(n api.StorageNode) bool {
		return engine.ClusterOf(&n, clusters.Items) != key.Name
	})
	slices.SortFunc(nodes, func(a, b api.StorageNode) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, nil
}
