package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Actions is the Store's face for actions.
type Actions struct{ store *Store }

var _ action.Store = (*Actions)(nil)

// Actions returns the action.Store over the same API and caches. What earlier leaders wrote is in
// it, because it first waits until the cache has seen what the API has now.
func (s *Store) Actions(ctx context.Context) (*Actions, error) {
	var now api.ActionList
	if err := s.api.List(ctx, &now); err != nil {
		return nil, fmt.Errorf("while reading actions: %w", err)
	}
	for i := range now.Items {
		s.fresh.wrote(kindOf(&now.Items[i]), &now.Items[i])
	}
	return &Actions{s}, nil
}

// List implements action.Store.
func (x *Actions) List(ctx context.Context) ([]*api.Action, error) {
	if err := x.store.fresh.wait(ctx); err != nil {
		return nil, err
	}
	var list api.ActionList
	if err := x.store.cache.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("while listing actions: %w", err)
	}
	all := make([]*api.Action, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Hosts implements action.Store.
func (x *Actions) Hosts(ctx context.Context) (map[string]action.HostFacts, error) {
	var list api.HostList
	if err := x.store.cache.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("while listing hosts: %w", err)
	}
	facts := map[string]action.HostFacts{}
	for i := range list.Items {
		facts[list.Items[i].Name] = factsOf(&list.Items[i])
	}
	return facts, nil
}

// concernControlPlane is what a server has a part in beside clusters: two of them out at one time
// may be its majority.
const concernControlPlane = "the control plane"

// Concern implements action.Store.
func (x *Actions) Concern(ctx context.Context, host string) ([]string, error) {
	var h api.Host
	if err := x.store.cache.Get(ctx, types.NamespacedName{Name: host}, &h); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var what []string
	for _, c := range x.store.clustersUsing(&h) {
		what = append(what, action.ClusterConcern(c.Namespace, c.Name))
	}
	if _, server := h.Labels[api.LabelServer]; server {
		what = append(what, concernControlPlane)
	}
	return what, nil
}

func factsOf(h *api.Host) action.HostFacts {
	since, _ := h.SilentSince()
	return action.HostFacts{
		Joined: h.CreationTimestamp.Time,
		Silent: !h.AgentHeard(),
		Since:  since,
	}
}

// Get implements action.Store.
func (x *Actions) Get(ctx context.Context, a *api.Action) (*api.Action, error) {
	var now api.Action
	if err := x.store.api.Get(ctx, client.ObjectKeyFromObject(a), &now); err != nil {
		return nil, actionError(a, "reading", err)
	}
	return &now, nil
}

// PutStatus implements action.Store.
func (x *Actions) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	next := a.DeepCopy()
	if err := x.store.api.Status().Update(ctx, next); err != nil {
		return nil, actionError(a, "writing", err)
	}
	x.store.fresh.wrote(kindOf(next), next)
	return next, nil
}

// Remove implements action.Store.
func (x *Actions) Remove(ctx context.Context, a *api.Action) error {
	undo := x.store.fresh.removing(kindOf(a), a, true)
	err := x.store.api.Delete(ctx, a.DeepCopy(), client.Preconditions{UID: &a.UID})
	if err != nil {
		undo()
	}
	// The conflict is with the UID: another one has the name now.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return actionError(a, "removing", err)
	}
	return nil
}

// Notify implements action.Store.
func (x *Actions) Notify(ctx context.Context, f func()) { x.store.notifyActions(ctx, f) }

func actionError(a *api.Action, what string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		err = action.ErrNotFound
	case apierrors.IsConflict(err):
		err = action.ErrConflict
	}
	return fmt.Errorf("while %s action %s/%s: %w", what, a.Namespace, a.Name, err)
}

// notifyActions calls f with each change of an action, and of what actions depend on in a host,
// until ctx ends.
func (s *Store) notifyActions(ctx context.Context, f func()) {
	s.mu.Lock()
	s.actionWatchers[&f] = true
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.actionWatchers, &f)
	})
}

// sawForActions tells of a change that matters to actions. was is nil for an object that is new.
func (s *Store) sawForActions(was, is client.Object, gone bool) {
	switch o := is.(type) {
	case *api.Action:
	case *api.Host:
		if before, ok := was.(*api.Host); ok && !gone && factsOf(before) == factsOf(o) {
			return
		}
	default:
		return
	}
	s.mu.Lock()
	watchers := make([]func(), 0, len(s.actionWatchers))
	for f := range s.actionWatchers {
		watchers = append(watchers, *f)
	}
	s.mu.Unlock()
	for _, f := range watchers {
		f()
	}
}
