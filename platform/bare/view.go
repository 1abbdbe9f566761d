package bare

import (
	"context"
	"fmt"
	"maps"
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
	sortByName(list.Items)
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

// notFound makes an error of the API wrap engine.ErrNotFound where it says that.
func notFound(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", what, engine.ErrNotFound)
	}
	return fmt.Errorf("while reading %s: %w", what, err)
}

// View reads everything of one cluster but View.System.
func (s *Store) View(ctx context.Context, cluster types.NamespacedName) (*engine.View, error) {
	c, err := s.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var (
		clusters api.StorageClusterList
		nodes    api.StorageNodeList
		hosts    api.HostList
		daemons  api.DaemonList
	)
	for _, list := range []client.ObjectList{&clusters, &nodes, &hosts, &daemons} {
		if err := s.cache.List(ctx, list); err != nil {
			return nil, fmt.Errorf("while reading %T of cluster %s: %w", list, cluster, err)
		}
	}
	sortByName(hosts.Items)
	v := &engine.View{
		Cluster: c, Hosts: hosts.Items,
		Claims: engine.ClaimsOf(nodes.Items, daemons.Items, hosts.Items, clusters.Items),
	}
	v.Nodes = keep(nodes.Items, func(n *api.StorageNode) bool {
		return n.Namespace == c.Namespace && engine.ClusterOf(n, clusters.Items) == c.Name
	})
	v.Daemons = keep(daemons.Items, func(d *api.Daemon) bool { return d.Namespace == c.Namespace && d.Spec.Cluster == c.Name })
	if err := s.addStatus(ctx, v); err != nil {
		return nil, err
	}
	return v, s.addSecrets(ctx, v)
}

func (s *Store) addStatus(ctx context.Context, v *engine.View) error {
	var status api.StorageStatus
	switch err := s.cache.Get(ctx, client.ObjectKeyFromObject(v.Cluster), &status); {
	case err == nil:
		v.Status = &status
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("while reading the StorageStatus of cluster %s: %w", v.Cluster.Name, err)
	}
	return nil
}

func (s *Store) addSecrets(ctx context.Context, v *engine.View) error {
	var secrets corev1.SecretList
	err := s.cache.List(ctx, &secrets, client.InNamespace(v.Cluster.Namespace), client.MatchingLabels{api.LabelCluster: v.Cluster.Name})
	if err != nil {
		return fmt.Errorf("while reading the names of secrets of cluster %s: %w", v.Cluster.Name, err)
	}
	sortByName(secrets.Items)
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		v.Secrets = append(v.Secrets, engine.SecretInfo{
			Name: secret.Name, Keys: slices.Sorted(maps.Keys(secret.Data)), Annotations: secret.Annotations,
		})
	}
	return nil
}

// keep returns those elements that are wanted, sorted by name.
func keep[T any, P object[T]](items []T, wanted func(P) bool) []T {
	var kept []T
	for i := range items {
		if wanted(&items[i]) {
			kept = append(kept, items[i])
		}
	}
	sortByName[T, P](kept)
	return kept
}

type object[T any] interface {
	*T
	client.Object
}

func sortByName[T any, P object[T]](items []T) {
	slices.SortFunc(items, func(a, b T) int {
		x, y := P(&a), P(&b)
		if c := strings.Compare(x.GetNamespace(), y.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(x.GetName(), y.GetName())
	})
}
