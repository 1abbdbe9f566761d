package bare

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/engine"
)

// LeaderLease is the name of the Lease in SystemNamespace that the servers contend for to lead.
const LeaderLease = "leader"

// lock is a cluster's lock in the hand of this Store.
type lock struct {
	// term counts who had the lock; it is the Lease's leaseTransitions.
	term int32
	// runs are the runs that rely on the lock now.
	runs map[*context.CancelCauseFunc]bool
}

func lockName(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: SystemNamespace, Name: "orchestrate-" + cluster.Namespace + "-" + cluster.Name}
}

// Lock takes the cluster's lock for this leader. The first call for a cluster writes its Lease; later ones cost nothing.
func (s *Store) Lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error) {
	name := lockName(cluster)
	if ctx, unlock, ok := s.held(ctx, name); ok {
		return ctx, unlock, nil
	}
	term, err := s.take(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	if s.terms[name] <= term {
		s.locks[name] = &lock{term: term, runs: map[*context.CancelCauseFunc]bool{}}
	}
	s.mu.Unlock()
	ctx, unlock, ok := s.held(ctx, name)
	if !ok {
		return nil, nil, fmt.Errorf("the lock %s was taken by another server at once: %w", name.Name, engine.ErrLocked)
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
	ctx, cancel := context.WithCancelCause(ctx)
	l.runs[&cancel] = true
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(l.runs, &cancel)
		cancel(nil)
	}, true
}

// take writes this server's name and the next term into the Lease.
func (s *Store) take(ctx context.Context, name types.NamespacedName) (term int32, err error) {
	var lease coordinationv1.Lease
	err = s.api.Get(ctx, name, &lease)
	if apierrors.IsNotFound(err) {
		lease.ObjectMeta = objectMeta(name)
		s.sign(&lease)
		err = s.api.Create(ctx, &lease)
		return ptr.Deref(lease.Spec.LeaseTransitions, 0), raced(name, err)
	}
	if err != nil {
		return 0, fmt.Errorf("while reading the lock: %w", err)
	}
	if err := s.mayTake(ctx, &lease); err != nil {
		return 0, err
	}
	s.sign(&lease)
	err = s.api.Update(ctx, &lease)
	return *lease.Spec.LeaseTransitions, raced(name, err)
}

// raced says of a lock that someone else wrote at the same time that it is held.
func raced(name types.NamespacedName, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("the lock %s is being taken by another server: %w", name.Name, engine.ErrLocked)
	default:
		return fmt.Errorf("while taking the lock: %w", err)
	}
}

func (s *Store) sign(lease *coordinationv1.Lease) {
	lease.Spec.HolderIdentity = ptr.To(s.identity)
	lease.Spec.AcquireTime = ptr.To(metav1.NowMicro())
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
}

// mayTake refuses a lock whose holder leads. Leadership decides, not the age of the lock: a dead leader's locks can be had as
// soon as another one leads.
func (s *Store) mayTake(ctx context.Context, lock *coordinationv1.Lease) error {
	holder := ptr.Deref(lock.Spec.HolderIdentity, "")
	if holder == "" || holder == s.identity {
		return nil
	}
	var leader coordinationv1.Lease
	err := s.api.Get(ctx, types.NamespacedName{Namespace: SystemNamespace, Name: LeaderLease}, &leader)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while asking who leads: %w", err)
	}
	if err == nil && ptr.Deref(leader.Spec.HolderIdentity, "") == holder && !expired(&leader, time.Now()) {
		return fmt.Errorf("the lock %s is held by %s, which leads: %w", lock.Name, holder, engine.ErrLocked)
	}
	return nil
}

func expired(lease *coordinationv1.Lease, now time.Time) bool {
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return false
	}
	return now.After(lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second))
}

// sawLock ends the runs of a lock that another holder took, or this server under a later term.
func (s *Store) sawLock(lease *coordinationv1.Lease) {
	name := client.ObjectKeyFromObject(lease)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	holder, term := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseTransitions, 0)
	s.terms[name] = max(s.terms[name], term)
	if l == nil || term < l.term || term == l.term && holder == s.identity {
		return
	}
	delete(s.locks, name)
	for cancel := range l.runs {
		(*cancel)(fmt.Errorf("the lock %s was taken by %s: %w", name.Name, holder, engine.ErrLocked))
	}
}

// dropLock removes the lock of a cluster that is finished. The run that has it goes on to its end.
func (s *Store) dropLock(ctx context.Context, cluster types.NamespacedName) error {
	name := lockName(cluster)
	s.mu.Lock()
	delete(s.locks, name)
	delete(s.terms, name)
	s.mu.Unlock()
	err := s.api.Delete(ctx, &coordinationv1.Lease{ObjectMeta: objectMeta(name)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while removing the lock: %w", err)
	}
	return nil
}
