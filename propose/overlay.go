package propose

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// copyOf is a world of which another may be made without changing the first.
func copyOf(o *engine.Objects) *engine.Objects {
	c := *o
	c.Clusters, c.Nodes, c.Hosts, c.Daemons = slices.Clone(o.Clusters), slices.Clone(o.Nodes), slices.Clone(o.Hosts), slices.Clone(o.Daemons)
	c.Resources, c.Actions = slices.Clone(o.Resources), slices.Clone(o.Actions)
	return &c
}

// kindOf is the kind of an object of Holdfast's group, and empty for one of any other.
func kindOf(u *unstructured.Unstructured) string {
	if u.GroupVersionKind().Group != api.Group {
		return ""
	}
	return u.GetKind()
}

func (t Target) kind() string { return kindOf(t.Unstructured) }

// change puts what becomes of the objects of a request in the place of those that are there.
func change(world *engine.Objects, targets []Target) error {
	for _, t := range targets {
		var err error
		switch t.kind() {
		case engine.KindCluster:
			err = changeCluster(world, t)
		case engine.KindNode:
			world.Nodes, err = replace(world.Nodes, t)
		case engine.KindHost:
			world.Hosts, err = replace(world.Hosts, t)
		case engine.KindDaemon:
			world.Daemons, err = replace(world.Daemons, t)
		case engine.KindAction:
			world.Actions, err = replace(world.Actions, t)
		default:
			err = changeResource(world, t)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

// changeCluster marks a cluster as deleted, as the API does: it goes when the engine has let go of
// it.
func changeCluster(world *engine.Objects, t Target) (err error) {
	if t.After != nil {
		world.Clusters, err = replace(world.Clusters, t)
		return err
	}
	for i := range world.Clusters {
		if c := &world.Clusters[i]; c.Namespace == t.GetNamespace() && c.Name == t.GetName() && c.DeletionTimestamp == nil {
			deleted := c.DeepCopy()
			now := metav1.Now()
			deleted.DeletionTimestamp = &now
			world.Clusters[i] = *deleted
		}
	}
	return nil
}

// changeResource puts what becomes of a resource in its place. One that is deleted and that the
// engine keeps is marked, as the API does. Objects of kinds that no view is made of change nothing.
func changeResource(world *engine.Objects, t Target) error {
	i := indexOfResource(world.Resources, t)
	next := api.NewResource(t.kind())
	switch {
	case next == nil, t.After == nil && i < 0:
		return nil
	case t.After != nil:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.After.Object, next); err != nil {
			return err
		}
	case !slices.Contains(world.Resources[i].GetFinalizers(), api.FinalizerResource):
		world.Resources = slices.Delete(world.Resources, i, i+1)
		return nil
	case world.Resources[i].GetDeletionTimestamp() == nil:
		next = engine.CopyResource(world.Resources[i])
		now := metav1.Now()
		next.SetDeletionTimestamp(&now)
	default:
		return nil // it is being deleted already
	}
	if i < 0 {
		world.Resources = append(world.Resources, next)
	} else {
		world.Resources[i] = next
	}
	return nil
}

func indexOfResource(all []api.Resource, t Target) int {
	return slices.IndexFunc(all, func(r api.Resource) bool {
		return r.ResourceKind() == t.kind() && r.GetNamespace() == t.GetNamespace() && r.GetName() == t.GetName()
	})
}

// replace puts what becomes of an object into its list.
func replace[T any, P interface {
	*T
	object
}](list []T, t Target) ([]T, error) {
	same := func(have T) bool {
		return P(&have).GetNamespace() == t.GetNamespace() && P(&have).GetName() == t.GetName()
	}
	if t.After == nil {
		return slices.DeleteFunc(list, same), nil
	}
	var fresh T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.After.Object, &fresh); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, same)
	if i < 0 {
		return append(list, fresh), nil
	}
	list[i] = fresh
	return list, nil
}

// touches says whether one of the objects is the cluster, a node, a daemon or a resource of it, or
// a host that matters to it.
func touches(world *engine.Objects, targets []Target, cluster types.NamespacedName) bool {
	return slices.ContainsFunc(targets, func(t Target) bool {
		if t.kind() == engine.KindHost {
			i := slices.IndexFunc(world.Hosts, func(h api.Host) bool { return h.Name == t.GetName() })
			return i >= 0 && slices.Contains(engine.ClustersOfHost(&world.Hosts[i], world.Nodes, world.Daemons, world.Clusters), cluster)
		}
		if t.GetNamespace() != cluster.Namespace {
			return false
		}
		switch t.kind() {
		case engine.KindCluster:
			return t.GetName() == cluster.Name
		case engine.KindNode:
			i := slices.IndexFunc(world.Nodes, func(n api.StorageNode) bool { return n.Namespace == t.GetNamespace() && n.Name == t.GetName() })
			return i >= 0 && engine.ClusterOf(&world.Nodes[i], world.Clusters) == cluster.Name
		case engine.KindDaemon:
			return slices.ContainsFunc(world.Daemons, func(d api.Daemon) bool {
				return d.Namespace == t.GetNamespace() && d.Name == t.GetName() && d.Spec.Cluster == cluster.Name
			})
		}
		i := indexOfResource(world.Resources, t)
		return i >= 0 && engine.ClusterOfResource(world.Resources[i]) == cluster
	})
}
