package agent

import (
	"context"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

const (
	// BeatInterval is how often an agent renews its Lease.
	BeatInterval = 5 * time.Second
	// beatTries is how often one beat is tried again that another agent came before with its own.
	beatTries = 3
)

// beat renews the host's Lease until ctx ends.
func (a *agent) beat(ctx context.Context) {
	tick := time.NewTicker(BeatInterval)
	defer tick.Stop()
	ticks := a.ticks
	if ticks == nil {
		ticks = tick.C
	}
	failing := false
	for {
		err := a.renew(ctx)
		// Once is enough in the log: the server is away, or it is back.
		if failing != (err != nil) && ctx.Err() == nil {
			failing = err != nil
			if failing {
				a.log.Warn("no heartbeat reaches the server; daemons keep running", "error", lockedOut(err))
			} else {
				a.log.Info("the server receives heartbeats")
			}
		}
		a.noticeTwin(ctx)
		a.noticeClock()
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// renew writes the Lease over what this agent knows of it. Nobody else writes it but another agent of the same name: then the
// write is refused, and the Lease is read.
func (a *agent) renew(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, BeatInterval)
	defer cancel()
	for range beatTries {
		l := a.lease
		a.lease = nil // what becomes of it is not known until the answer
		if l == nil {
			if l, err = a.readLease(ctx); err != nil {
				return err
			}
		}
		if !a.sole.judge(l, a.now()) {
			return nil
		}
		err = a.putLease(ctx, l)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// readLease returns the Lease, or an empty one where there is none yet.
func (a *agent) readLease(ctx context.Context) (*coordv1.Lease, error) {
	l := &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.HostLease(a.Name)}}
	err := a.client.Get(ctx, client.ObjectKeyFromObject(l), l)
	return l, client.IgnoreNotFound(err)
}

// putLease writes the Lease, if it is still what was read.
func (a *agent) putLease(ctx context.Context, old *coordv1.Lease) error {
	seconds, now := int32(quiet/time.Second), metav1.NowMicro()
	full := old.DeepCopy()
	full.Spec = coordv1.LeaseSpec{HolderIdentity: &a.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	self := a.sole.renewal(now, a.ownAddress(ctx))
	metav1.SetMetaDataAnnotation(&full.ObjectMeta, instance.Annotation, self.String())
	delete(full.Annotations, instance.Farewell)
	err := a.writeLease(ctx, full, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsForbidden(err) {
		// Servers of an earlier version take no annotation. With them it is as it was: nobody tells two machines apart.
		delete(full.Annotations, instance.Annotation)
		err = a.writeLease(ctx, full, client.MergeFrom(old))
	}
	if err != nil {
		return err
	}
	a.sole.written()
	a.lease = full
	return nil
}

func (a *agent) writeLease(ctx context.Context, full *coordv1.Lease, patch client.Patch) error {
	if full.ResourceVersion == "" {
		return a.client.Create(ctx, full)
	}
	return a.client.Patch(ctx, full, patch)
}

// noticeClock has the host reported when its clock comes to differ from the server's, or to agree again.
func (a *agent) noticeClock() {
	cond, ok := a.clock.Condition()
	if ok && a.told.clock.Swap(cond.Message) != cond.Message {
		a.askReport()
	}
}
