package store

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

func kindOf(o client.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// watch makes the caches and lets the Store see all that comes into them. It returns what to wait
// for once they run.
func (s *Store) watch(ctx context.Context) ([]toolscache.DoneChecker, error) {
	var filled []toolscache.DoneChecker
	kinds := append([]client.Object{
		&api.StorageCluster{}, &api.StorageNode{}, &api.StorageStatus{}, &api.Daemon{}, &api.Host{}, &api.Action{},
		&api.Plan{}, &corev1.Secret{}, &coordinationv1.Lease{},
	}, kindsOfResources()...)
	if s.forbids != nil {
		kinds = append(kinds, &corev1.Namespace{})
	}
	for _, o := range kinds {
		informer, err := s.cache.GetInformer(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("while watching %s: %w", kindOf(o), err)
		}
		if err := s.indexMany(o, informer); err != nil {
			return nil, fmt.Errorf("while preparing the indexes of %s: %w", kindOf(o), err)
		}
		r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(is any) { s.saw(nil, is, false) },
			UpdateFunc: func(was, is any) { s.saw(was, is, false) },
			DeleteFunc: func(is any) { s.saw(is, is, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("while watching %s: %w", kindOf(o), err)
		}
		filled = append(filled, r.HasSyncedChecker())
	}
	return filled, nil
}

// saw is called with each change of a cache, after the cache has it. was is nil for an object that
// is new.
func (s *Store) saw(was, is any, gone bool) {
	if lost, ok := is.(toolscache.DeletedFinalStateUnknown); ok {
		was, is = lost.Obj, lost.Obj
	}
	o, ok := is.(client.Object)
	if !ok {
		return
	}
	s.fresh.saw(kindOf(o), o, gone)
	if lease, ok := o.(*coordinationv1.Lease); ok {
		s.sawLease(lease, gone)
		return
	}
	s.sawPlan(o)
	before, _ := was.(client.Object)
	s.sawForActions(before, o, gone)
	for _, c := range s.changes(before, o, gone) {
		tell(s, c)
	}
}

func (s *Store) sawLease(lease *coordinationv1.Lease, gone bool) {
	if host, ok := api.HostOfLease(lease.Name); ok {
		s.beats.Saw(host, lease, gone)
		return
	}
	if gone {
		s.lockGone(lease)
		return
	}
	s.sawLock(lease)
}

type watcher struct{ f func(engine.Change) }

// Notify calls f with each change that concerns a cluster, until ctx ends.
func (s *Store) Notify(ctx context.Context, f func(engine.Change)) {
	w := &watcher{f}
	s.mu.Lock()
	s.watchers[w] = true
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	})
}

func tell(s *Store, c engine.Change) {
	s.mu.Lock()
	watchers := make([]*watcher, 0, len(s.watchers))
	for w := range s.watchers {
		watchers = append(watchers, w)
	}
	s.mu.Unlock()
	for _, w := range watchers {
		w.f(c)
	}
}

// changes says which clusters a change concerns. was is nil for an object that is new.
func (s *Store) changes(was, is client.Object, gone bool) []engine.Change {
	var clusters []types.NamespacedName
	switch o := is.(type) {
	case *api.StorageCluster:
		before, _ := was.(*api.StorageCluster)
		if before == nil || gone || generationChanged(was, is) || engine.Requested(before, o) {
			clusters = append(clusters, client.ObjectKeyFromObject(o))
		}
	case *api.StorageNode:
		if was == nil || gone || generationChanged(was, is) {
			clusters = s.clustersOfNode(was, o)
		}
	case api.Resource:
		if was == nil || gone || generationChanged(was, is) {
			clusters = append(clusters, engine.ClusterOfResource(o))
		}
	case *api.Daemon:
		before, _ := was.(*api.Daemon)
		if was == nil || gone || was.GetResourceVersion() != is.GetResourceVersion() && !serving.Alone(before, o) {
			clusters = append(clusters, types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Cluster})
		}
	case *api.Action:
		before, _ := was.(*api.Action)
		clusters = s.clustersOfAction(before, o)
	case *api.Host:
		clusters = s.clustersOfHost(was, o, gone)
	case *corev1.Namespace:
		before, _ := was.(*corev1.Namespace)
		clusters = s.clustersOfNamespace(before, o)
	}
	kind := kindOf(is)
	if kind == "Namespace" {
		kind = engine.KindCluster // what the platform allows is a matter of the cluster itself
	}
	changes := make([]engine.Change, len(clusters))
	for i, c := range clusters {
		changes[i] = engine.Change{Cluster: c, Kind: kind, Object: strings.ToLower(kindOf(is)) + "/" + is.GetName()}
	}
	return changes
}

// generationChanged is false for a change of status, labels or annotations alone.
func generationChanged(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil)
}

// clustersOfNode returns the cluster that a node belongs to, and the one that it belonged to.
func (s *Store) clustersOfNode(was client.Object, is *api.StorageNode) []types.NamespacedName {
	all := s.allClusters()
	var found []types.NamespacedName
	name := engine.ClusterOf(is, all)
	if name != "" {
		found = append(found, types.NamespacedName{Namespace: is.Namespace, Name: name})
	}
	if before, ok := was.(*api.StorageNode); ok {
		if old := engine.ClusterOf(before, all); old != "" && old != name {
			found = append(found, types.NamespacedName{Namespace: is.Namespace, Name: old})
		}
	}
	return found
}

// clustersOfHost returns the clusters that a change of a host concerns: all for a host that is new
// or has other labels, because any may wait for it, else those that use it.
func (s *Store) clustersOfHost(was client.Object, is *api.Host, gone bool) []types.NamespacedName {
	before, ok := was.(*api.Host)
	all := s.allClusters()
	if !ok || !equality.Semantic.DeepEqual(before.Labels, is.Labels) {
		names := make([]types.NamespacedName, len(all))
		for i := range all {
			names[i] = client.ObjectKeyFromObject(&all[i])
		}
		return names
	}
	if !gone && before.Spec.Mode == is.Spec.Mode && equality.Semantic.DeepEqual(before.Status, is.Status) {
		return nil
	}
	return s.clustersUsing(is)
}

// clustersUsing returns the clusters that use a host. A host reports often, so only what may
// concern it is looked at.
func (s *Store) clustersUsing(host *api.Host) []types.NamespacedName {
	var daemons []api.Daemon
	for _, d := range s.daemonsBy(byHost, host.Name) {
		daemons = append(daemons, *d)
	}
	return engine.ClustersOfHost(host, s.nodesMeaning(host), daemons, s.allClusters())
}

func (s *Store) allClusters() []api.StorageCluster {
	var list api.StorageClusterList
	s.list(&list)
	return list.Items
}

// list reads from the caches while they run. Before one of them is filled it waits, and when the
// Store ends it reads nothing: what a watch is told then concerns nobody any more, and it must not
// keep the Store from ending.
func (s *Store) list(list client.ObjectList, options ...client.ListOption) {
	_ = s.cache.List(s.life, list, options...)
}

// clustersOfAction returns the clusters to tell of an action that is new, or came into another
// state: its own, or those that use its host.
func (s *Store) clustersOfAction(was, is *api.Action) []types.NamespacedName {
	if action.Quiet(is) || was != nil && was.UID == is.UID && was.Status.State == is.Status.State {
		return nil
	}
	if is.Spec.Cluster != "" {
		return []types.NamespacedName{{Namespace: is.Namespace, Name: is.Spec.Cluster}}
	}
	var host api.Host
	if s.cache.Get(s.life, types.NamespacedName{Name: is.Spec.Host}, &host) != nil {
		return nil
	}
	return s.clustersUsing(&host)
}
