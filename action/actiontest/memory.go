// Package actiontest holds what tests of actions share: a Store in memory, the suite that every action.Store passes, and a
// Handler that counts what it did.
package actiontest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Memory is an action.Store in memory, and the API that people and agents use beside it. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	version  int
	actions  map[types.NamespacedName]*api.Action
	hosts    map[string]action.HostFacts
	concern  map[string][]string
	watchers map[*func()]bool
}

var _ action.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		actions: map[types.NamespacedName]*api.Action{}, hosts: map[string]action.HostFacts{}, concern: map[string][]string{}, watchers: map[*func()]bool{},
	}
}

func keyOf(a *api.Action) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
}

// Create stores a new action, and fills in what the API server would.
func (m *Memory) Create(_ context.Context, a *api.Action) error {
	return m.change(func() error {
		if m.actions[keyOf(a)] != nil {
			return fmt.Errorf("action %s exists", a.Name)
		}
		if a.CreationTimestamp.IsZero() {
			a.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
		}
		if a.Spec.Approval == "" {
			a.Spec.Approval = api.ApprovalGranted
		}
		m.put(a)
		a.UID = types.UID("uid-" + a.ResourceVersion)
		m.actions[keyOf(a)].UID = a.UID
		return nil
	})
}

// UpdateSpec stores a.Spec and the annotations of an action that is there, whatever was written meanwhile.
func (m *Memory) UpdateSpec(_ context.Context, a *api.Action) error {
	return m.change(func() error {
		have := m.actions[keyOf(a)]
		if have == nil {
			return action.ErrNotFound
		}
		next := have.DeepCopy()
		next.Spec, next.Annotations = *a.Spec.DeepCopy(), maps.Clone(a.Annotations)
		m.put(next)
		return nil
	})
}

// SetHost makes a host known, or changes what is known of it.
func (m *Memory) SetHost(name string, f action.HostFacts) {
	_ = m.change(func() error { m.hosts[name] = f; return nil })
}

// RemoveHost forgets a host.
func (m *Memory) RemoveHost(name string) {
	_ = m.change(func() error { delete(m.hosts, name); return nil })
}

// Get implements action.Store.
func (m *Memory) Get(_ context.Context, a *api.Action) (*api.Action, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.actions[keyOf(a)]; have != nil {
		return have.DeepCopy(), nil
	}
	return nil, fmt.Errorf("action %s: %w", a.Name, action.ErrNotFound)
}

// PutStatus implements action.Store.
func (m *Memory) PutStatus(ctx context.Context, a *api.Action) (stored *api.Action, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err = m.change(func() error {
		switch have := m.actions[keyOf(a)]; {
		case have == nil:
			return fmt.Errorf("action %s: %w", a.Name, action.ErrNotFound)
		case have.UID != a.UID || have.ResourceVersion != a.ResourceVersion:
			return fmt.Errorf("action %s: %w", a.Name, action.ErrConflict)
		default:
			stored = have.DeepCopy()
			stored.Status = *a.Status.DeepCopy()
			m.put(stored)
			return nil
		}
	})
	return stored, err
}

// List implements action.Store.
func (m *Memory) List(context.Context) ([]*api.Action, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*api.Action
	for _, a := range m.actions {
		all = append(all, a.DeepCopy())
	}
	slices.SortFunc(all, func(a, b *api.Action) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return all, nil
}

// Hosts implements action.Store.
func (m *Memory) Hosts(context.Context) (map[string]action.HostFacts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.hosts), nil
}

// SetConcern says what actions on a host concern that name no cluster.
func (m *Memory) SetConcern(host string, what ...string) {
	_ = m.change(func() error { m.concern[host] = what; return nil })
}

// Concern implements action.Store.
func (m *Memory) Concern(_ context.Context, host string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.concern[host]), nil
}

// Remove implements action.Store.
func (m *Memory) Remove(_ context.Context, a *api.Action) error {
	return m.change(func() error {
		if have := m.actions[keyOf(a)]; have != nil && have.UID == a.UID {
			delete(m.actions, keyOf(a))
		}
		return nil
	})
}

// Notify implements action.Store.
func (m *Memory) Notify(ctx context.Context, f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers[&f] = true
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, &f)
	})
}

func (m *Memory) put(a *api.Action) {
	m.version++
	a.ResourceVersion = strconv.Itoa(m.version)
	m.actions[keyOf(a)] = a.DeepCopy()
}

// change does one write, and tells of it when the lock is free again.
func (m *Memory) change(do func() error) error {
	m.mu.Lock()
	err := do()
	var watchers []func()
	for f := range m.watchers {
		watchers = append(watchers, *f)
	}
	m.mu.Unlock()
	if err == nil {
		for _, f := range watchers {
			f()
		}
	}
	return err
}
