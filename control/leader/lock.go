package leader

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// lock is a Lease whose holder is the value of a fence as well, at each moment: both are written at once, on condition that
// nobody wrote the Lease meanwhile.
type lock struct {
	leases coordinationclient.LeaseInterface
	name   string
	times  Times
}

// get reads the Lease. One that there is not is empty.
func (l *lock) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := l.leases.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("while reading the lease %s: %w", l.name, err)
	}
	return lease, nil
}

// put writes the Lease in the place of the version that it was read as. An empty holder releases it, and removes the fence.
//
// A renewal sets the fence again, which mends what is missing after a database was restored.
func (l *lock) put(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx = fence.Setting(ctx, fence.Token{Name: l.name, Value: holder(lease)})
	if lease.ResourceVersion == "" {
		return l.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return l.leases.Update(ctx, lease, metav1.UpdateOptions{})
}

// watch tells of changes of the Lease after the version that it was read as.
func (l *lock) watch(ctx context.Context, lease *coordinationv1.Lease) (watch.Interface, error) {
	return l.leases.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + l.name, ResourceVersion: lease.ResourceVersion})
}

func holder(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// taken returns the Lease as a new holder has it.
func taken(lease *coordinationv1.Lease, token string, lasts time.Duration) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &token, AcquireTime: &now, RenewTime: &now,
		LeaseDurationSeconds: ptr.To(int32(lasts / time.Second)),
		LeaseTransitions:     ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1),
	}
	return lease
}

// renewed returns the Lease as its holder writes it again.
func renewed(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	return lease
}

// released returns the Lease without a holder.
func released(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = renewed(lease)
	lease.Spec.HolderIdentity = nil
	return lease
}
