package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The indexes of the caches: Daemons by their host and by their cluster, Secrets by their cluster,
// and StorageNodes by the host that they were accepted on and by the one that they select.
const (
	byHost     = "host"
	byCluster  = "cluster"
	acceptedOn = "status.host"
	selecting  = "spec.nodeSelector.hostname"
)

// anyHost stands in the index for nodes that select hosts by other labels than the host's name.
const anyHost = "*"

// addIndexes makes the indexes, before the caches are filled.
func addIndexes(ctx context.Context, c cache.Cache) error {
	for _, x := range []struct {
		of    client.Object
		field string
		value client.IndexerFunc
	}{
		{&api.StorageNode{}, acceptedOn, func(o client.Object) []string { return []string{o.(*api.StorageNode).Status.Host} }},
		{&api.StorageNode{}, selecting, func(o client.Object) []string {
			if name, ok := o.(*api.StorageNode).Spec.NodeSelector[api.LabelHostname]; ok {
				return []string{name}
			}
			return []string{anyHost}
		}},
	} {
		if err := c.IndexField(ctx, x.of, x.field, x.value); err != nil {
			return fmt.Errorf("while preparing the index %s: %w", x.field, err)
		}
	}
	return nil
}

// indexMany makes the indexes of the kinds of which there are many, Daemons and Secrets. The
// cache's own lists copy each object; of ten thousand that is too much.
func (s *Store) indexMany(o client.Object, informer cache.Informer) (err error) {
	switch o.(type) {
	case *api.Daemon:
		s.daemons, err = indexBy(informer, toolscache.Indexers{
			byHost:    func(o any) ([]string, error) { return []string{o.(*api.Daemon).Spec.Host}, nil },
			byCluster: func(o any) ([]string, error) { return []string{clusterOf(o.(*api.Daemon)).String()}, nil },
		})
	case *corev1.Secret:
		s.secrets, err = indexBy(informer, toolscache.Indexers{
			byCluster: func(o any) ([]string, error) {
				return []string{clusterOfSecret(o.(*corev1.Secret)).String()},
					nil
			},
		})
	}
	return err
}

func indexBy(informer cache.Informer, indexers toolscache.Indexers) (toolscache.Indexer, error) {
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache is a %T without indexes", informer)
	}
	return indexed.GetIndexer(), informer.AddIndexers(indexers)
}

// daemonsBy are the Daemons of the cache by host or cluster, in no order. Nobody may write to them.
func (s *Store) daemonsBy(index, value string) []*api.Daemon {
	return listBy[*api.Daemon](s.daemons, index, value)
}

// listBy lists the objects that an index of a cache has for a value.
func listBy[T any](in toolscache.Indexer, index, value string) []T {
	found, err := in.ByIndex(index, value)
	if err != nil {
		panic(err) // there is such an index
	}
	objects := make([]T, len(found))
	for i, o := range found {
		objects[i] = o.(T)
	}
	return objects
}

func clusterOfSecret(s *corev1.Secret) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[api.LabelCluster]}
}

func clusterOf(d *api.Daemon) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Cluster}
}

// nodesMeaning are the nodes that may have been accepted on a host or select it; others cannot.
func (s *Store) nodesMeaning(host *api.Host) []api.StorageNode {
	var all []api.StorageNode
	for _, by := range []client.MatchingFields{
		{acceptedOn: host.Name}, {selecting: host.Labels[api.LabelHostname]}, {selecting: anyHost},
	} {
		var list api.StorageNodeList
		s.list(&list, by)
		all = append(all, list.Items...)
	}
	return all
}
