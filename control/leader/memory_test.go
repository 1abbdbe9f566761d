package leader

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// memory is one Lease, as an API server keeps it.
type memory struct {
	mu       sync.Mutex
	version  int
	lease    *coordinationv1.Lease
	watchers map[*watch.RaceFreeFakeWatcher]bool
}

// reach is how one server reaches the Lease. One that is cut off gets no answer until its deadline, and hears of no change.
type reach struct {
	coordinationclient.LeaseInterface
	*memory
	cut bool
	// failing has each request answered by an error that passes.
	failing atomic.Bool
	// watched, when set, gives each of its watches the end that it is to have.
	watched func(*watch.RaceFreeFakeWatcher) error
	// requests counts what it was asked for, watches among it.
	requests atomic.Int32
}

var resource = coordinationv1.Resource("leases")

func (r *reach) wait(ctx context.Context) error {
	r.requests.Add(1)
	r.mu.Lock()
	cut := r.cut
	r.mu.Unlock()
	if r.failing.Load() {
		return apierrors.NewTimeoutError("etcdserver: leader changed", 0)
	}
	if cut {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return ctx.Err()
}

func (r *reach) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return r.lease.DeepCopy(), nil
}

func (r *reach) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return r.write(ctx, lease)
}

func (r *reach) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return r.write(ctx, lease)
}

func (r *reach) write(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	have := ""
	if r.lease != nil {
		have = r.lease.ResourceVersion
	}
	if have != lease.ResourceVersion {
		return nil, apierrors.NewConflict(resource, lease.Name, errors.New("it was changed"))
	}
	r.version++
	r.lease = lease.DeepCopy()
	r.lease.ResourceVersion = strconv.Itoa(r.version)
	for w := range r.watchers {
		w.Modify(r.lease.DeepCopy())
	}
	return r.lease.DeepCopy(), nil
}

// Watch tells of changes from now on; what the real one would tell of the time between the read and the watch is told at once.
func (r *reach) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := watch.NewRaceFreeFake()
	if r.watched != nil {
		return w, r.watched(w)
	}
	if r.watchers == nil {
		r.watchers = map[*watch.RaceFreeFakeWatcher]bool{}
	}
	r.watchers[w] = true
	if r.lease != nil && r.lease.ResourceVersion != o.ResourceVersion {
		w.Modify(r.lease.DeepCopy())
	}
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
		w.Stop()
	})
	return w, nil
}

// set cuts the server off, or lets it reach the Lease again.
func (r *reach) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}
