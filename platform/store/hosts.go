package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Hosts lists all hosts.
func (s *Store) Hosts(ctx context.Context) ([]api.Host, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	var list api.HostList
	if err := s.cache.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("while listing hosts: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.Host) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Host reads a host, and what is on it.
func (s *Store) Host(ctx context.Context, name string) (*engine.HostView, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	return ReadHost(ctx, s.cache, name)
}

// ReadHost reads a host, and what is on it, with a client or a cache. The error wraps
// engine.ErrNotFound when there is no such host.
func ReadHost(ctx context.Context, r client.Reader, name string) (*engine.HostView, error) {
	var host api.Host
	if err := r.Get(ctx, types.NamespacedName{Name: name}, &host); err != nil {
		return nil, notFound(err, "host %s", name)
	}
	var clusters api.StorageClusterList
	var nodes api.StorageNodeList
	var daemons api.DaemonList
	for _, list := range []client.ObjectList{&clusters, &nodes, &daemons} {
		if err := r.List(ctx, list); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	return engine.OnHost(&host, nodes.Items, daemons.Items, clusters.Items), nil
}

// PutHost writes a host's metadata and spec, if change makes them differ.
func (s *Store) PutHost(ctx context.Context, name string, change func(*api.Host)) error {
	err := edit(ctx, s, types.NamespacedName{Name: name}, func(h *api.Host) error {
		before := h.DeepCopy()
		if change(h); equality.Semantic.DeepEqual(before, h) {
			return errUnchanged
		}
		return nil
	}, s.patch)
	if apierrors.IsNotFound(err) {
		return notFound(err, "host %s", name)
	}
	return err
}

// RemoveHost deletes a host and its agent's Lease. An agent that still runs would otherwise find
// itself connected. The Lease goes before the host: while the host is there its removal is
// repeated, and afterwards nobody looks for what it left. It goes once more at the end, because an
// agent that lives may have written it in between; without its host it has no right to.
func (s *Store) RemoveHost(ctx context.Context, name string) error {
	if err := removeLease(ctx, s, name); err != nil {
		return err
	}
	if err := remove[api.Host](ctx, s, types.NamespacedName{Name: name}); err != nil {
		return fmt.Errorf("while deleting host %s: %w", name, err)
	}
	return removeLease(ctx, s, name)
}

func removeLease(ctx context.Context, s *Store, host string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.HostLease(host)}}
	if err := client.IgnoreNotFound(s.api.Delete(ctx, lease)); err != nil {
		return fmt.Errorf("while deleting the lease of host %s: %w", host, err)
	}
	return nil
}

// PutNode writes a StorageNode's spec, if change makes it differ.
func (s *Store) PutNode(ctx context.Context, node types.NamespacedName, change func(*api.StorageNodeSpec)) error {
	err := edit(ctx, s, node, func(n *api.StorageNode) error {
		before := n.Spec.DeepCopy()
		if change(&n.Spec); equality.Semantic.DeepEqual(*before, n.Spec) {
			return errUnchanged
		}
		return nil
	}, s.patch)
	if apierrors.IsNotFound(err) {
		return notFound(err, "storagenode %s", node)
	}
	return err
}

// RemoveNode deletes a StorageNode.
func (s *Store) RemoveNode(ctx context.Context, node types.NamespacedName) error {
	return remove[api.StorageNode](ctx, s, node)
}

// remove deletes an object. One that is gone or being deleted is no error.
func remove[T any, P object[T]](ctx context.Context, s *Store, name types.NamespacedName) error {
	var o T
	err := s.cache.Get(ctx, name, P(&o))
	if apierrors.IsNotFound(err) {
		err = s.api.Get(ctx, name, P(&o))
	}
	if apierrors.IsNotFound(err) || err == nil && P(&o).GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	uid := P(&o).GetUID()
	undo := s.fresh.removing(kindOf(P(&o)), P(&o), len(P(&o).GetFinalizers()) == 0)
	if err := s.api.Delete(ctx, P(&o), client.Preconditions{UID: &uid}); err != nil {
		undo()
		return client.IgnoreNotFound(err)
	}
	return nil
}

// ReleaseDaemon takes the agent's finalizer from a daemon that is being deleted.
func (s *Store) ReleaseDaemon(ctx context.Context, daemon types.NamespacedName) error {
	// The cache may not have seen yet that this Store deleted the daemon.
	if err := s.fresh.wait(ctx); err != nil {
		return err
	}
	return client.IgnoreNotFound(edit(ctx, s, daemon, func(d *api.Daemon) error {
		if d.DeletionTimestamp == nil || !slices.Contains(d.Finalizers, api.FinalizerDaemon) {
			return errUnchanged
		}
		d.Finalizers = slices.DeleteFunc(slices.Clone(d.Finalizers),
			func(f string) bool { return f == api.FinalizerDaemon })
		return nil
	}, s.letGo))
}
