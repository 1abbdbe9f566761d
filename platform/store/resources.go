package store

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// kindsOfResources are an empty object of each kind of resource.
func kindsOfResources() []client.Object {
	var all []client.Object
	for _, list := range api.ResourceLists() {
		all = append(all, list.NewResource())
	}
	return all
}

// ReadResources reads the resources of all kinds, sorted, with a client or a cache.
func ReadResources(ctx context.Context, r client.Reader, which ...client.ListOption) ([]api.Resource, error) {
	var all []api.Resource
	for _, list := range api.ResourceLists() {
		if err := r.List(ctx, list, which...); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			all = append(all, o.(api.Resource))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	engine.SortResources(all)
	return all, nil
}

// Resources lists all resources of all kinds.
func (s *Store) Resources(ctx context.Context) ([]api.Resource, error) {
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	return ReadResources(ctx, s.cache)
}

// PutResource adopts a resource and writes its status, or lets it go.
func (s *Store) PutResource(ctx context.Context, change engine.ResourceChange) error {
	if change.Gone {
		return s.releaseResource(ctx, change.Resource, change.Same)
	}
	current := func(r api.Resource) error {
		if change.Stale(r) {
			return fmt.Errorf("%s: %w", change.Object(), engine.ErrStale)
		}
		return nil
	}
	err := s.editResource(ctx, change.Resource, func(r api.Resource) error {
		if err := current(r); err != nil {
			return err
		}
		if change.Unadopted || !engine.AdoptResource(r) {
			return errUnchanged
		}
		return nil
	}, s.patch)
	if err == nil {
		err = s.editResource(ctx, change.Resource, func(r api.Resource) error {
			if err := current(r); err != nil {
				return err
			}
			return takeStatus(r, change.Resource)
		}, s.updateStatus)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is gone: %w", change.Object(), engine.ErrStale)
	}
	return err
}

// takeStatus gives a resource the status of another; the error is errUnchanged where it has it.
func takeStatus(r, from api.Resource) error {
	was := engine.CopyResource(r)
	if r.TakeStatus(from); equality.Semantic.DeepEqual(was, r) {
		return errUnchanged
	}
	return nil
}

// editResource changes a resource of any kind, as edit does.
func (s *Store) editResource(ctx context.Context, r api.Resource, change func(api.Resource) error, write writer) error {
	return editObject(ctx, s, client.ObjectKeyFromObject(r),
		func() api.Resource { return api.NewResource(r.ResourceKind()) }, change, write)
}

// releaseResource takes the engine's finalizer from a resource, if may says so.
func (s *Store) releaseResource(ctx context.Context, r api.Resource, may func(api.Resource) bool) error {
	return client.IgnoreNotFound(s.editResource(ctx, r, func(r api.Resource) error {
		if !may(r) || !engine.ReleaseResource(r) {
			return errUnchanged
		}
		return nil
	}, func(ctx context.Context, was, o client.Object) error {
		if o.GetDeletionTimestamp() == nil {
			return s.patch(ctx, was, o)
		}
		return s.letGo(ctx, was, o)
	}))
}

// orphanResources lets the resources of a cluster go that is gone: nobody would hear of their
// deletion any more.
func (s *Store) orphanResources(ctx context.Context, cluster types.NamespacedName) error {
	all, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	for _, r := range engine.ResourcesOf(all, cluster) {
		err := s.editResource(ctx, r, func(r api.Resource) error {
			told := engine.CopyResource(r)
			engine.OrphanResource(told)
			return takeStatus(r, told)
		}, s.updateStatus)
		if client.IgnoreNotFound(err) == nil {
			err = s.releaseResource(ctx, r, func(api.Resource) bool { return true })
		}
		if err != nil {
			return fmt.Errorf("while releasing %s: %w", engine.ResourceObject(r), err)
		}
	}
	return nil
}
