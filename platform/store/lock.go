package store

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/fence"
)

// lock is a cluster's lock in the hand of this Store.
type lock struct {
	// term counts who had the lock; it is the Lease's leaseTransitions.
	term int32
	// fence is the token that writes under the lock carry.
	fence fence.Token
	// runs are the runs that rely on the lock now.
	runs map[*context.CancelCauseFunc]bool
}

// lockName has a dot where the namespace ends, which cannot have one: no two clusters share a lock.
func lockName(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: api.SystemNamespace, Name: "orchestrate-" + cluster.Namespace + "." + cluster.Name}
}

// Lock takes the cluster's lock for this leader. The first call for a cluster writes its Lease;
// later ones cost nothing. Writes under the context that it returns are refused once the lock has a
// later term.
func (s *Store) Lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error) {
	name := lockName(cluster)
	if ctx, unlock, ok := s.held(ctx, name); ok {
		return ctx, unlock, nil
	}
	taken, err := s.take(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	if s.terms[name] <= taken.term {
		s.locks[name], s.terms[name] = taken, taken.term
	}
	s.mu.Unlock()
	ctx, unlock, ok := s.held(ctx, name)
	if !ok {
		return nil, nil, fmt.Errorf("another server took the lock %s first: %w", name.Name, engine.ErrLocked)
	}
	return ctx, unlock, nil
}

// held returns a context that ends with the lock, if the Store has the lock.
func (s *Store) held(ctx context.Context, name types.NamespacedName) (context.Context, func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l == nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(fence.With(ctx, l.fence))
	l.runs[&cancel] = true
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(l.runs, &cancel)
		cancel(nil)
	}, true
}

// take writes this leader's token and the next term into the Lease and, at once, into the lock's
// fence. Nobody but the leader can, because the write carries the leader's token, and the leader
// may take a lock from anyone: its holder leads no more.
func (s *Store) take(ctx context.Context, name types.NamespacedName) (*lock, error) {
	var lease coordinationv1.Lease
	err := s.api.Get(ctx, name, &lease)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return nil, fmt.Errorf("while reading the lock: %w", err)
	}
	lease.Namespace, lease.Name = name.Namespace, name.Name
	taken := s.sign(&lease)
	setting := fence.Setting(ctx, taken.fence)
	if isNew {
		err = s.api.Create(setting, &lease)
	} else {
		err = s.api.Update(setting, &lease)
	}
	if err != nil {
		return nil, s.raced(ctx, name, err)
	}
	return taken, nil
}

// raced says of a lock that someone else wrote at the same time, or that only another server may
// take, that it is held.
func (s *Store) raced(ctx context.Context, name types.NamespacedName, err error) error {
	switch {
	case fence.Lost(err):
		return fmt.Errorf("cannot take the lock %s, because %s leads: %w", name.Name, s.leader(ctx), engine.ErrLocked)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("another server is taking the lock %s: %w", name.Name, engine.ErrLocked)
	default:
		return fmt.Errorf("while taking the lock: %w", err)
	}
}

// leader names who leads, for messages.
func (s *Store) leader(ctx context.Context) string {
	var lease coordinationv1.Lease
	err := s.api.Get(ctx, types.NamespacedName{Namespace: api.SystemNamespace, Name: api.LeaderLease}, &lease)
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); err == nil && holder != "" {
		return holder
	}
	return "another server, or none,"
}

// sign makes this leader the holder of a lock. The term goes on also where the Lease was deleted by
// hand, so that no term is had twice.
func (s *Store) sign(lease *coordinationv1.Lease) *lock {
	s.mu.Lock()
	term := max(s.terms[client.ObjectKeyFromObject(lease)], ptr.Deref(lease.Spec.LeaseTransitions, 0)) + 1
	s.mu.Unlock()
	lease.Spec.HolderIdentity = ptr.To(s.token)
	lease.Spec.AcquireTime = ptr.To(metav1.NowMicro())
	lease.Spec.LeaseTransitions = ptr.To(term)
	return &lock{
		term: term, runs: map[*context.CancelCauseFunc]bool{},
		fence: fence.Token{Name: lease.Name, Value: fmt.Sprintf("%s#%d", s.token, term)},
	}
}

// sawLock ends the runs of a lock that another holder took, or this server under a later term.
func (s *Store) sawLock(lease *coordinationv1.Lease) {
	name := client.ObjectKeyFromObject(lease)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	holder, term := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseTransitions, 0)
	s.terms[name] = max(s.terms[name], term)
	if l == nil || term < l.term || term == l.term && holder == s.token {
		return
	}
	s.lose(name, fmt.Errorf("%s took the lock %s: %w", holder, name.Name, engine.ErrLocked))
}

// lockGone ends the runs of a lock whose Lease someone deleted. The next run takes the lock anew.
func (s *Store) lockGone(lease *coordinationv1.Lease) {
	name := client.ObjectKeyFromObject(lease)
	s.mu.Lock()
	defer s.mu.Unlock()
	// What is told late, of a Lease that was made again since, is no loss.
	if l := s.locks[name]; l != nil && ptr.Deref(lease.Spec.LeaseTransitions, 0) >= l.term {
		s.lose(name, fmt.Errorf("the lock %s was deleted: %w", name.Name, engine.ErrLocked))
	}
}

// lose ends the runs of a lock. The caller holds s.mu.
func (s *Store) lose(name types.NamespacedName, cause error) {
	for cancel := range s.locks[name].runs {
		(*cancel)(cause)
	}
	delete(s.locks, name)
}

// dropLock removes the Lease of a cluster that is finished. The run that has the lock goes on to
// its end: the fence stays until the cluster is let go (Finish), or until another leader takes the
// lock.
func (s *Store) dropLock(ctx context.Context, cluster types.NamespacedName) error {
	name := lockName(cluster)
	s.mu.Lock()
	delete(s.locks, name)
	delete(s.terms, name)
	s.mu.Unlock()
	err := s.api.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while removing the lock: %w", err)
	}
	return nil
}
