package store

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/engine"
)

// forbidden is why the platform starts no daemons in a namespace. The watch of namespaces may be
// behind that of clusters, and a namespace is often made a moment before its cluster.
func (s *Store) forbidden(ctx context.Context, name string) (*engine.Prohibition, error) {
	if s.forbids == nil {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	err := s.cache.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		err = s.api.Get(ctx, types.NamespacedName{Name: name}, namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("while reading namespace %s: %w", name, err)
	}
	return s.forbids(namespace), nil
}

// clustersOfNamespace returns the clusters of a namespace in which daemons are forbidden, or
// allowed, since a change of it.
func (s *Store) clustersOfNamespace(was, is *corev1.Namespace) (found []types.NamespacedName) {
	if was == nil || reflect.DeepEqual(s.forbids(was), s.forbids(is)) {
		return nil
	}
	for _, c := range s.allClusters() {
		if c.Namespace == is.Name {
			found = append(found, client.ObjectKeyFromObject(&c))
		}
	}
	return found
}
