package sim

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Hosts lists all hosts.
func (m *Memory) Hosts(context.Context) ([]api.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m, func(*api.Host) bool { return true }), nil
}

// Host reads a host, and what is on it.
func (m *Memory) Host(_ context.Context, name string) (*engine.HostView, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[id{"Host", "", name}]
	if !ok {
		return nil, fmt.Errorf("host %s: %w", name, engine.ErrNotFound)
	}
	return engine.OnHost(clone(o.(*api.Host)),
		list(m, func(*api.StorageNode) bool { return true }), list(m, func(*api.Daemon) bool { return true }),
		list(m, func(*api.StorageCluster) bool { return true })), nil
}

// PutHost writes a host's metadata and spec, if change makes them differ.
func (m *Memory) PutHost(ctx context.Context, name string, change func(*api.Host)) error {
	return m.write(ctx, "PutHost", name, func() ([]engine.Change, error) {
		o, ok := m.objects[id{"Host", "", name}]
		if !ok {
			return nil, fmt.Errorf("host %s: %w", name, engine.ErrNotFound)
		}
		next := clone(o.(*api.Host))
		if change(next); equality.Semantic.DeepEqual(next, o) {
			return nil, nil
		}
		return m.update(next)
	})
}

// RemoveHost deletes a host.
func (m *Memory) RemoveHost(ctx context.Context, name string) error {
	return m.write(ctx, "RemoveHost", name, func() ([]engine.Change, error) {
		return ignoreNotFound(m.remove(id{"Host", "", name}))
	})
}

// PutNode writes a StorageNode's spec, if change makes it differ.
func (m *Memory) PutNode(ctx context.Context, node types.NamespacedName, change func(*api.StorageNodeSpec)) error {
	return m.write(ctx, "PutNode", node.Name, func() ([]engine.Change, error) {
		o, ok := m.objects[id{"StorageNode", node.Namespace, node.Name}]
		if !ok {
			return nil, fmt.Errorf("storagenode %s: %w", node, engine.ErrNotFound)
		}
		next := clone(o.(*api.StorageNode))
		if change(&next.Spec); equality.Semantic.DeepEqual(next, o) {
			return nil, nil
		}
		return m.update(next)
	})
}

// RemoveNode deletes a StorageNode.
func (m *Memory) RemoveNode(ctx context.Context, node types.NamespacedName) error {
	return m.write(ctx, "RemoveNode", node.Name, func() ([]engine.Change, error) {
		return ignoreNotFound(m.remove(id{"StorageNode", node.Namespace, node.Name}))
	})
}

// ReleaseDaemon takes the agent's finalizer from a daemon that is being deleted.
func (m *Memory) ReleaseDaemon(ctx context.Context, daemon types.NamespacedName) error {
	return m.write(ctx, "ReleaseDaemon", daemon.Name, func() ([]engine.Change, error) {
		o, ok := m.objects[id{"Daemon", daemon.Namespace, daemon.Name}]
		if !ok || o.GetDeletionTimestamp() == nil || !slices.Contains(o.GetFinalizers(), api.FinalizerDaemon) {
			return nil, nil
		}
		next := clone(o.(*api.Daemon))
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == api.FinalizerDaemon })
		changes, err := m.update(next)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return changes, err
	})
}
