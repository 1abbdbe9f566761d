package engine

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
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
	Secrets []ObjectsSecret
}

// ObjectsSecret is a Secret without what it holds.
type ObjectsSecret struct {
	Namespace, Cluster string
	SecretInfo
}

// View makes the view of one cluster. The error wraps ErrNotFound when there is no such cluster.
func (o *Objects) View(cluster types.NamespacedName) (*View, error) {
	own, others := daemonsOf(o.Daemons, cluster)
	v, err := o.Own(cluster, own)
	if err != nil {
		return nil, err
	}
	v.AddNeighbours(o.Nodes, func(map[string]bool) []*api.Daemon { return others }, o.Clusters)
	return v, nil
}

// Own is the view of one cluster with its daemons, which are given, and without its neighbours.
func (o *Objects) Own(cluster types.NamespacedName, daemons []*api.Daemon) (*View, error) {
	v := &View{Hosts: slices.Clone(o.Hosts)}
	for i := range o.Clusters {
		if clusterKey(&o.Clusters[i]) == cluster {
			v.Cluster = &o.Clusters[i]
		}
	}
	if v.Cluster == nil {
		return nil, fmt.Errorf("storagecluster %s: %w", cluster, ErrNotFound)
	}
	for i := range o.Nodes {
		if n := &o.Nodes[i]; n.Namespace == cluster.Namespace && ClusterOf(n, o.Clusters) == cluster.Name {
			v.Nodes = append(v.Nodes, *n)
		}
	}
	slices.SortFunc(daemons, func(a, b *api.Daemon) int { return cmp.Compare(a.Name, b.Name) })
	v.Daemons = make([]api.Daemon, len(daemons))
	for i, d := range daemons {
		v.Daemons[i] = *d
	}
	for i := range o.Statuses {
		if key(o.Statuses[i].Namespace, o.Statuses[i].Name) == cluster {
			v.Status = &o.Statuses[i]
		}
	}
	for _, s := range o.Secrets {
		if s.Namespace == cluster.Namespace && s.Cluster == cluster.Name {
			v.Secrets = append(v.Secrets, s.SecretInfo)
		}
	}
	v.Resources = ResourcesOf(o.Resources, cluster)
	v.Actions = ActionsOf(o.Actions, cluster)
	sortView(v)
	return v, nil
}

// daemonsOf parts the daemons of a cluster from all others.
func daemonsOf(all []api.Daemon, cluster types.NamespacedName) (own, others []*api.Daemon) {
	for i := range all {
		if d := &all[i]; key(d.Namespace, d.Spec.Cluster) == cluster {
			own = append(own, d)
		} else {
			others = append(others, d)
		}
	}
	return own, others
}

func sortView(v *View) {
	slices.SortFunc(v.Nodes, func(a, b api.StorageNode) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Hosts, func(a, b api.Host) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Secrets, func(a, b SecretInfo) int { return cmp.Compare(a.Name, b.Name) })
}
