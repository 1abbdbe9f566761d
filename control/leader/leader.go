// Package leader elects one server that acts for all.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// The times of an election. A leader that cannot renew its lease stops acting after renewDeadline; another one acts
// leaseDuration after the last renewal at the latest, plus one retryPeriod.
const (
	leaseDuration = 5 * time.Second
	renewDeadline = 3500 * time.Millisecond
	retryPeriod   = time.Second
)

// Election is a contest among servers. Its fields are set before Run.
type Election struct {
	// REST reaches the API.
	REST *rest.Config
	// Namespace and Name are those of the Lease that the servers contend for.
	Namespace, Name string
	// Server is this server's name, unique among the servers.
	Server string
	Log    *slog.Logger
}

// Lead is what a leader does. token is its proof that it leads: the value of the fence that has the Lease's name, and the
// Lease's holder. It is another one each time, so that a write that was left on its way by an earlier term cannot pass for
// one of this term.
type Lead func(ctx context.Context, token string)

// Run contends for leadership until ctx ends, and calls lead each time that it is won. The context given to lead ends when
// leadership is lost; Run waits for lead to return before it contends again, so lead never runs twice at once. When lead
// returns by itself, leadership is given up, so that another server may try. At the end a lease that is held is released, and
// the next leader need not wait for it to expire.
func (e *Election) Run(ctx context.Context, lead Lead) error {
	config := fence.Config(rest.AddUserAgent(e.REST, "leader-election"))
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("while preparing the election: %w", err)
	}
	for ctx.Err() == nil {
		if err := e.term(ctx, clientset, lead); err != nil {
			return err
		}
	}
	return nil
}

// term contends once, and returns when leadership was had and is over, or ctx has ended.
func (e *Election) term(ctx context.Context, clientset kubernetes.Interface, lead Lead) error {
	token := e.Server + "_" + uuid.NewString()[:8]
	// The contest goes on after ctx has ended until lead has returned: a lease that is released earlier would let another
	// server act while this one still does.
	contest, endContest := context.WithCancel(context.WithoutCancel(ctx))
	defer endContest()
	t := &term{lead: func(ctx context.Context) { lead(ctx, token) }, end: endContest}
	lock := &fencedLock{resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:     clientset.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: token},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		// The elector would release a lease that it cannot renew before it says that the lease is lost, and so, while the
		// API hangs, let the leader act beyond the end of its lease. It is released below.
		ReleaseOnCancel: false,
		Name:            e.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: t.run,
			OnStoppedLeading: func() {}, // Run returns then, which says the same
			OnNewLeader: func(identity string) {
				e.Log.Info("a leader was elected", "leader", identity, "self", identity == token)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("while preparing the election: %w", err)
	}
	stop := context.AfterFunc(ctx, t.stop)
	defer stop()
	elector.Run(contest)
	t.stop()
	if err := release(context.WithoutCancel(ctx), lock); err != nil {
		e.Log.Info("the lease was not released: the next leader waits until it ends", "lease", e.Name, "error", err)
	}
	return nil
}

// release gives up the lease, if this server holds it still.
func release(ctx context.Context, lock resourcelock.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != lock.Identity() {
		return err
	}
	now := metav1.Now()
	return lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	})
}

// term is one time of leadership.
type term struct {
	lead func(context.Context)
	end  context.CancelFunc

	mu     sync.Mutex
	over   bool
	cancel context.CancelFunc
	done   chan struct{}
}

// run is called by the elector, on a goroutine of its own, when leadership was won. ctx ends when it is lost.
func (t *term) run(ctx context.Context) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	ctx, t.cancel = context.WithCancel(ctx)
	t.done = make(chan struct{})
	t.mu.Unlock()
	defer t.end()
	defer close(t.done)
	t.lead(ctx)
}

// stop ends leadership, if it is held: lead is told, and waited for, and only then the lease is released.
func (t *term) stop() {
	t.mu.Lock()
	t.over = true
	cancel, done := t.cancel, t.done
	t.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
	t.end()
}
