package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

const (
	// attempts bounds how often a write is tried when the object changes under it.
	attempts = 10
	// firstPause is how long is waited at most after the first conflict; each further pause may be
	// twice as long. Without one, an agent that reports often could win each time on a machine that
	// is busy.
	firstPause = 2 * time.Millisecond
)

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// errUnchanged is returned by an edit that finds nothing to do.
var errUnchanged = errors.New("unchanged")

// edit changes an object that is there: it reads the cached version, lets change edit a copy, and
// writes it under the condition that nobody wrote meanwhile. After a conflict it reads from the API
// itself and tries again. The error of the API says whether there is no such object.
func edit[T any, P object[T]](ctx context.Context, s *Store, name types.NamespacedName, change func(P) error,
	write writer,
) error {
	return editObject(ctx, s, name, func() P { return P(new(T)) }, change, write)
}

// editObject is edit for a kind that is known only when it runs: empty makes an object of it.
func editObject[O client.Object](ctx context.Context, s *Store, name types.NamespacedName, empty func() O,
	change func(O) error, write writer,
) error {
	cached := empty()
	err := s.cache.Get(ctx, name, cached)
	if apierrors.IsNotFound(err) {
		// The cache may not have seen the object yet.
		err = s.api.Get(ctx, name, cached)
	}
	for n := range attempts {
		if err != nil {
			return err
		}
		next := cached.DeepCopyObject().(O)
		if err = change(next); err != nil {
			if errors.Is(err, errUnchanged) {
				return nil
			}
			return err
		}
		if err = write(ctx, cached, next); err == nil {
			s.fresh.wrote(kindOf(next), next)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		conflict := err
		pause(ctx, rand.N(firstPause<<n))
		fresh := empty()
		if err = s.api.Get(ctx, name, fresh); err == nil {
			cached = fresh
		}
		if err == nil && ctx.Err() != nil {
			return errors.Join(conflict, context.Cause(ctx))
		}
	}
	return fmt.Errorf("%s %s changed in each of %d attempts to write it", kindOf(cached), name, attempts)
}

// writer writes an object that was edited, on condition that it is in the API as it was.
type writer func(ctx context.Context, was, o client.Object) error

// update writes all of an object that is the engine's alone.
func (s *Store) update(ctx context.Context, _, o client.Object) error { return s.api.Update(ctx, o) }

func (s *Store) updateStatus(ctx context.Context, _, o client.Object) error {
	return s.api.Status().Update(ctx, o)
}

// patch writes what was edited of an object that people write, too. The whole of it would be in
// Go's words, 1m0s for somebody's 60s, and the API would take such a field for the engine's from
// then on: who applies the same file again would meet a conflict.
func (s *Store) patch(ctx context.Context, was, o client.Object) error {
	return s.api.Patch(ctx, o, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

func (s *Store) create(ctx context.Context, o client.Object) error {
	if err := s.api.Create(ctx, o); err != nil {
		return err
	}
	s.fresh.wrote(kindOf(o), o)
	return nil
}

// PutDaemon creates a new daemon or updates the spec and the memory of one that is there.
func (s *Store) PutDaemon(ctx context.Context, cluster *api.StorageCluster, change engine.DaemonChange) error {
	want := engine.DaemonFor(cluster, change)
	name := client.ObjectKeyFromObject(want)
	if change.New {
		if err := s.create(ctx, want.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	err := edit(ctx, s, name, func(d *api.Daemon) error {
		if _, changed := leadermemory.Write(d, want); !changed {
			return errUnchanged
		}
		return nil
	}, s.update)
	if apierrors.IsNotFound(err) && !change.New {
		return fmt.Errorf("daemon %s is gone: %w", name.Name, engine.ErrStale)
	}
	if apierrors.IsNotFound(err) { // the one that was there when this one was to be created is gone
		return s.create(ctx, want)
	}
	return err
}

// AnnotateDaemon writes a daemon's annotations, if change makes them differ.
func (s *Store) AnnotateDaemon(
	ctx context.Context, daemon types.NamespacedName, change func(annotations map[string]string),
) error {
	err := edit(ctx, s, daemon, func(d *api.Daemon) error {
		next := maps.Clone(d.Annotations)
		if next == nil {
			next = map[string]string{}
		}
		if change(next); maps.Equal(next, d.Annotations) {
			return errUnchanged
		}
		d.Annotations = next
		return nil
	}, s.patch)
	if apierrors.IsNotFound(err) {
		return notFound(err, "daemon %s", daemon)
	}
	return err
}

// PutService writes what the storage system says of a daemon, if it differs.
func (s *Store) PutService(ctx context.Context, namespace string, change serving.Change) error {
	name := types.NamespacedName{Namespace: namespace, Name: change.Name}
	return client.IgnoreNotFound(edit(ctx, s, name, func(d *api.Daemon) error {
		if equality.Semantic.DeepEqual(d.Status.Service, change.Service) {
			return errUnchanged
		}
		d.Status.Service = change.Service.DeepCopy()
		return nil
	}, s.updateStatus))
}

// RemoveDaemon deletes a daemon. One that is being deleted already is left alone.
func (s *Store) RemoveDaemon(ctx context.Context, namespace, name string) error {
	return remove[api.Daemon](ctx, s, types.NamespacedName{Namespace: namespace, Name: name})
}

// PutNodeStatus writes a StorageNode's status, if it differs, on condition that the node is as
// status.Seen.
func (s *Store) PutNodeStatus(ctx context.Context, namespace string, status engine.NodeStatus) error {
	return client.IgnoreNotFound(edit(ctx, s, types.NamespacedName{Namespace: namespace, Name: status.Name},
		func(n *api.StorageNode) error {
			if status.Stale(n) {
				return fmt.Errorf("node %s: %w", n.Name, engine.ErrStale)
			}
			if equality.Semantic.DeepEqual(n.Status, status.Status) {
				return errUnchanged
			}
			n.Status = *status.Status.DeepCopy()
			return nil
		}, s.updateStatus))
}

// PutStatus creates the cluster's StorageStatus or writes its status, if it differs.
func (s *Store) PutStatus(ctx context.Context, cluster *api.StorageCluster, status api.StorageStatusStatus) error {
	want := engine.StatusFor(cluster)
	put := func() error {
		return edit(ctx, s, client.ObjectKeyFromObject(want), func(have *api.StorageStatus) error {
			if equality.Semantic.DeepEqual(have.Status, status) {
				return errUnchanged
			}
			have.Status = *status.DeepCopy()
			return nil
		}, s.updateStatus)
	}
	err := put()
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := s.create(ctx, want.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return put()
}

// PutClusterStatus writes the StorageCluster's own status, if it differs.
func (s *Store) PutClusterStatus(ctx context.Context, cluster types.NamespacedName,
	change func(*api.StorageClusterStatus),
) error {
	err := edit(ctx, s, cluster, func(c *api.StorageCluster) error {
		before := c.Status.DeepCopy()
		change(&c.Status)
		if equality.Semantic.DeepEqual(*before, c.Status) {
			return errUnchanged
		}
		return nil
	}, s.updateStatus)
	if apierrors.IsNotFound(err) {
		return notFound(err, "cluster %s", cluster)
	}
	return err
}

// Adopt puts the engine's finalizer on a cluster.
func (s *Store) Adopt(ctx context.Context, cluster types.NamespacedName) error {
	err := edit(ctx, s, cluster, func(c *api.StorageCluster) error {
		if c.DeletionTimestamp != nil || slices.Contains(c.Finalizers, engine.Finalizer) {
			return errUnchanged
		}
		c.Finalizers = append(c.Finalizers, engine.Finalizer)
		return nil
	}, s.patch)
	if apierrors.IsNotFound(err) {
		return notFound(err, "cluster %s", cluster)
	}
	return err
}

// Finish lets a deleted cluster go. Each step may be repeated, and the finalizer goes last.
func (s *Store) Finish(ctx context.Context, cluster *api.StorageCluster) error {
	name := client.ObjectKeyFromObject(cluster)
	if err := s.DropEvents(ctx, name); err != nil {
		return err
	}
	status := engine.StatusFor(cluster)
	if err := client.IgnoreNotFound(s.api.Delete(ctx, status)); err != nil {
		return fmt.Errorf("while removing the StorageStatus: %w", err)
	}
	if err := s.orphanResources(ctx, name); err != nil {
		return err
	}
	if cluster.Spec.DeletionPolicy == api.DeletionWipe {
		if err := s.dropSecrets(ctx, name); err != nil {
			return err
		}
	}
	if err := s.dropLock(ctx, name); err != nil {
		return err
	}
	// The fence of the lock goes with the finalizer, in one transaction.
	unfence := fence.Setting(ctx, fence.Token{Name: lockName(name).Name})
	err := edit(unfence, s, name, func(c *api.StorageCluster) error {
		kept := slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == engine.Finalizer })
		if len(kept) == len(c.Finalizers) {
			return errUnchanged
		}
		c.Finalizers = kept
		return nil
	}, s.letGo)
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("while removing the finalizer: %w", err)
	}
	return nil
}

// letGo removes the last finalizer. The API server then removes the object, and the cache shall
// have seen that.
func (s *Store) letGo(ctx context.Context, was, o client.Object) error {
	if len(o.GetFinalizers()) > 0 {
		return s.patch(ctx, was, o)
	}
	undo := s.fresh.removing(kindOf(o), o, true)
	if err := s.api.Update(ctx, o); err != nil {
		undo()
		return err
	}
	return nil
}
