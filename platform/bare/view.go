package bare

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Objects is everything that views are made of.
type Objects struct {
	Clusters []api.StorageCluster
	Nodes    []api.StorageNode
	Hosts    []api.Host
	Daemons  []api.Daemon
	Statuses []api.StorageStatus
	Actions  []api.Action
	// Resources are those of all kinds.
	Resources []api.Resource
	// Secrets are those with the label of a cluster. What they hold is not kept.
	Secrets []Secret
}

// Secret is a Secret without what it holds.
type Secret struct {
	Namespace, Cluster string
	engine.SecretInfo
}

// ReadObjects reads everything that views are made of, with a client or a cache.
func ReadObjects(ctx context.Context, r client.Reader) (*Objects, error) {
	o := &Objects{}
	if err := o.readFew(ctx, r); err != nil {
		return nil, err
	}
	var daemons api.DaemonList
	if err := r.List(ctx, &daemons); err != nil {
		return nil, fmt.Errorf("while reading %T: %w", daemons, err)
	}
	o.Daemons = daemons.Items
	return o, o.readSecrets(ctx, r)
}

// readFew reads the kinds of which there are few.
func (o *Objects) readFew(ctx context.Context, r client.Reader) error {
	var clusters api.StorageClusterList
	var nodes api.StorageNodeList
	var hosts api.HostList
	var statuses api.StorageStatusList
	var actions api.ActionList
	for _, list := range []client.ObjectList{&clusters, &nodes, &hosts, &statuses, &actions} {
		if err := r.List(ctx, list); err != nil {
			return fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	o.Clusters, o.Nodes, o.Hosts, o.Statuses, o.Actions = clusters.Items, nodes.Items, hosts.Items, statuses.Items, actions.Items
	var err error
	o.Resources, err = ReadResources(ctx, r)
	return err
}

func (o *Objects) readSecrets(ctx context.Context, r client.Reader) error {
	var secrets corev1.SecretList
	if err := r.List(ctx, &secrets, client.HasLabels{api.LabelCluster}); err != nil {
		return fmt.Errorf("while reading %T: %w", secrets, err)
	}
	for i := range secrets.Items {
		o.Secrets = append(o.Secrets, secretOf(&secrets.Items[i]))
	}
	return nil
}

func secretOf(s *corev1.Secret) Secret {
	return Secret{
		Namespace: s.Namespace, Cluster: clusterOfSecret(s).Name,
		SecretInfo: engine.SecretInfo{Name: s.Name, UID: string(s.UID), Keys: sortedKeys(s.Data), Annotations: s.Annotations},
	}
}

// sortedKeys is made for each Secret of a cluster in each run, and nearly all have one key.
func sortedKeys(data map[string][]byte) []string {
	keys := make([]string, 0, len(data))
	for k := range data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// View makes the view of one cluster. The error wraps engine.ErrNotFound when there is no such cluster.
func (o *Objects) View(cluster types.NamespacedName) (*engine.View, error) {
	own, others := daemonsOf(o.Daemons, cluster)
	v, err := o.own(cluster, own)
	if err != nil {
		return nil, err
	}
	v.AddNeighbours(o.Nodes, func(map[string]bool) []*api.Daemon { return others }, o.Clusters)
	return v, nil
}

// own is the view of one cluster with its daemons and without its neighbours.
func (o *Objects) own(cluster types.NamespacedName, daemons []*api.Daemon) (*engine.View, error) {
	v := &engine.View{Hosts: slices.Clone(o.Hosts)}
	for i := range o.Clusters {
		if client.ObjectKeyFromObject(&o.Clusters[i]) == cluster {
			v.Cluster = &o.Clusters[i]
		}
	}
	if v.Cluster == nil {
		return nil, fmt.Errorf("storagecluster %s: %w", cluster, engine.ErrNotFound)
	}
	for i := range o.Nodes {
		if n := &o.Nodes[i]; n.Namespace == cluster.Namespace && engine.ClusterOf(n, o.Clusters) == cluster.Name {
			v.Nodes = append(v.Nodes, *n)
		}
	}
	slices.SortFunc(daemons, func(a, b *api.Daemon) int { return cmp.Compare(a.Name, b.Name) })
	v.Daemons = make([]api.Daemon, len(daemons))
	for i, d := range daemons {
		v.Daemons[i] = *d
	}
	for i := range o.Statuses {
		if client.ObjectKeyFromObject(&o.Statuses[i]) == cluster {
			v.Status = &o.Statuses[i]
		}
	}
	for _, s := range o.Secrets {
		if s.Namespace == cluster.Namespace && s.Cluster == cluster.Name {
			v.Secrets = append(v.Secrets, s.SecretInfo)
		}
	}
	v.Resources = engine.ResourcesOf(o.Resources, cluster)
	v.Actions = engine.ActionsOf(o.Actions, cluster)
	sortView(v)
	return v, nil
}

// daemonsOf parts the daemons of a cluster from all others.
func daemonsOf(all []api.Daemon, cluster types.NamespacedName) (own, others []*api.Daemon) {
	for i := range all {
		if d := &all[i]; clusterOf(d) == cluster {
			own = append(own, d)
		} else {
			others = append(others, d)
		}
	}
	return own, others
}

func sortView(v *engine.View) {
	slices.SortFunc(v.Nodes, func(a, b api.StorageNode) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Hosts, func(a, b api.Host) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Secrets, func(a, b engine.SecretInfo) int { return cmp.Compare(a.Name, b.Name) })
}

// Secrets reads the Secrets of one namespace.
type Secrets struct {
	Reader    client.Reader
	Namespace string
}

var _ engine.SecretReader = (*Secrets)(nil)

// Secret returns what the named Secret holds, or an error that wraps engine.ErrNotFound.
func (s *Secrets) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s: %w", name, engine.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("while reading secret %s: %w", name, err)
	}
	return secret.Data, nil
}
