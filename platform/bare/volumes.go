package bare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Volumes lists all Volumes.
func (s *Store) Volumes(ctx context.Context) ([]api.Volume, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	var list api.VolumeList
	if err := s.cache.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("while listing volumes: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.Volume) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// PutVolumeStatus adopts a Volume and writes its status, or lets it go.
func (s *Store) PutVolumeStatus(ctx context.Context, namespace string, status engine.VolumeStatus) error {
	name := types.NamespacedName{Namespace: namespace, Name: status.Name}
	if status.Gone {
		return s.releaseVolume(ctx, name, status.Same)
	}
	current := func(v *api.Volume) error {
		if status.Stale(v) {
			return fmt.Errorf("volume %s: %w", v.Name, engine.ErrStale)
		}
		return nil
	}
	err := edit(ctx, s, name, func(v *api.Volume) error {
		if err := current(v); err != nil {
			return err
		}
		if status.Unadopted || !engine.AdoptVolume(v) {
			return errUnchanged
		}
		return nil
	}, s.update)
	if err == nil {
		err = edit(ctx, s, name, func(v *api.Volume) error {
			if err := current(v); err != nil {
				return err
			}
			if equality.Semantic.DeepEqual(v.Status, status.Status) {
				return errUnchanged
			}
			v.Status = *status.Status.DeepCopy()
			return nil
		}, s.updateStatus)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("volume %s is gone: %w", status.Name, engine.ErrStale)
	}
	return err
}

// releaseVolume takes the engine's finalizer from a Volume, if may says so.
func (s *Store) releaseVolume(ctx context.Context, name types.NamespacedName, may func(*api.Volume) bool) error {
	return client.IgnoreNotFound(edit(ctx, s, name, func(v *api.Volume) error {
		if !may(v) || !engine.ReleaseVolume(v) {
			return errUnchanged
		}
		return nil
	}, func(ctx context.Context, o client.Object) error {
		if o.GetDeletionTimestamp() == nil {
			return s.api.Update(ctx, o)
		}
		return s.letGo(ctx, o)
	}))
}

// orphanVolumes lets the Volumes of a cluster go that is gone: nobody would hear of their deletion any more.
func (s *Store) orphanVolumes(ctx context.Context, cluster types.NamespacedName) error {
	all, err := s.Volumes(ctx)
	if err != nil {
		return err
	}
	for _, v := range engine.VolumesOf(all, cluster) {
		name := client.ObjectKeyFromObject(&v)
		err := edit(ctx, s, name, func(v *api.Volume) error {
			before := v.Status.DeepCopy()
			if engine.OrphanVolume(v); equality.Semantic.DeepEqual(*before, v.Status) {
				return errUnchanged
			}
			return nil
		}, s.updateStatus)
		if client.IgnoreNotFound(err) == nil {
			err = s.releaseVolume(ctx, name, func(*api.Volume) bool { return true })
		}
		if err != nil {
			return fmt.Errorf("while letting volume %s go: %w", v.Name, err)
		}
	}
	return nil
}
