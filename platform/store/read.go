package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Clusters lists all clusters.
func (s *Store) Clusters(ctx context.Context) ([]api.StorageCluster, error) {
	var list api.StorageClusterList
	if err := s.cache.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("while listing clusters: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.StorageCluster) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list.Items, nil
}

// Cluster reads one cluster.
func (s *Store) Cluster(ctx context.Context, cluster types.NamespacedName) (*api.StorageCluster, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	var c api.StorageCluster
	if err := s.cache.Get(ctx, cluster, &c); err != nil {
		return nil, notFound(err, "cluster %s", cluster)
	}
	return &c, nil
}

// View reads everything of one cluster but View.System.
func (s *Store) View(ctx context.Context, cluster types.NamespacedName) (*engine.View, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	objects, err := s.objectsOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	v, err := objects.Own(cluster, s.daemonsBy(byCluster, cluster.String()))
	if err != nil {
		return nil, err
	}
	if v.Forbidden, err = s.forbidden(ctx, cluster.Namespace); err != nil {
		return nil, err
	}
	v.AddNeighbours(objects.Nodes, func(hosts map[string]bool) []*api.Daemon { return s.neighbours(cluster, hosts) },
		objects.Clusters)
	return v, nil
}

// objectsOf reads what ReadObjects reads, but no Daemons, and of Secrets the cluster's alone: a
// fleet has many.
func (s *Store) objectsOf(ctx context.Context, cluster types.NamespacedName) (*engine.Objects, error) {
	o := &engine.Objects{}
	if err := readFew(ctx, s.cache, o); err != nil {
		return nil, err
	}
	secrets := listBy[*corev1.Secret](s.secrets, byCluster, cluster.String())
	o.Secrets = make([]engine.ObjectsSecret, 0, len(secrets))
	for _, secret := range secrets {
		o.Secrets = append(o.Secrets, secretOf(secret))
	}
	return o, nil
}

// neighbours are the daemons of other clusters on the hosts that a cluster uses.
func (s *Store) neighbours(cluster types.NamespacedName, hosts map[string]bool) []*api.Daemon {
	var others []*api.Daemon
	for host := range hosts {
		for _, d := range s.daemonsBy(byHost, host) {
			if clusterOf(d) != cluster {
				others = append(others, d)
			}
		}
	}
	return others
}

// notFound makes an error of the API wrap engine.ErrNotFound where it says that.
func notFound(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", what, engine.ErrNotFound)
	}
	return fmt.Errorf("while reading %s: %w", what, err)
}

// object is a pointer to a T that is a resource.
type object[T any] interface {
	*T
	client.Object
}
