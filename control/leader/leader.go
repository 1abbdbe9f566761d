// Package leader elects one server that acts for all.
//
// A Lease in the API is the lock (lock.go), and a term of leadership ends before the lease does
// (term.go). A follower watches the Lease and takes it as soon as it ends (follower.go). The token
// of a term is checked by etcd in each write of the leader (internal/fence, control/etcd/fence.go),
// so that an old leader writes nothing even if it does not know that its term is over.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// Times are those of an election. All candidates need the same.
type Times struct {
	// A leader acts for Deadline after the beginning of its last renewal that was done. Another
	// candidate may lead after Lease, counted from when it saw that renewal. The difference is for
	// clocks that do not run equally fast.
	Lease, Deadline time.Duration
	// Renew is the pause between renewals, and Retry that after a request that failed by what may
	// pass.
	Renew, Retry time.Duration
}

// defaults are the times where Election.Times says nothing.
var defaults = Times{Lease: 5 * time.Second, Deadline: 3500 * time.Millisecond, Renew: time.Second, Retry: 250 * time.Millisecond}

// Election is a contest among servers. Its fields are set before Run.
type Election struct {
	// REST reaches the API.
	REST *rest.Config
	// Namespace and Name are those of the Lease that the servers contend for.
	Namespace, Name string
	// Server is this server's name, unique among the servers.
	Server string
	// Times of the zero value are the defaults: 5 s, 3.5 s, 1 s and 250 ms.
	Times Times
	// Won is called after the Lease was taken and before lead, where the API keeps no fences of
	// Holdfast: it makes the writes count that carry the token, and none that carry an earlier one.
	// When it fails the Lease is released. Nil: the API keeps fences.
	Won func(ctx context.Context, token string) error
	Log *slog.Logger
}

// Lead is what a leader does. token is its proof that it leads: the value of the fence that has the
// Lease's name, and the Lease's holder. It is another one each time, so that a write that was left
// on its way by an earlier term cannot pass for one of this term.
type Lead func(ctx context.Context, token string)

// Run contends for leadership until ctx ends, and calls lead each time that it is won. The context
// given to lead ends when leadership is lost; Run waits for lead to return before it contends
// again, so lead never runs twice at once. When lead returns by itself, leadership is given up, so
// that another server may try. At the end a lease that is held is released, and the next leader
// need not wait for it to expire.
//
// It does without client-go's elector, which looks at the lease every 1 to 2.2 retry periods: a
// follower sees a renewal late by so much, and its end again. Here a follower watches, and acts at
// the moment at which the lease ends.
func (e *Election) Run(ctx context.Context, lead Lead) error {
	config := rest.AddUserAgent(rest.CopyConfig(e.REST), "leader-election")
	if e.Won == nil {
		config = fence.Config(config)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("while preparing the election: %w", err)
	}
	e.contend(ctx, &lock{leases: clientset.CoordinationV1().Leases(e.Namespace), name: e.Name, times: e.times()}, lead)
	return nil
}

func (e *Election) times() Times {
	if e.Times == (Times{}) {
		return defaults
	}
	return e.Times
}

func (e *Election) contend(ctx context.Context, l *lock, lead Lead) {
	f := &follower{lock: l, server: e.Server, log: e.Log}
	for {
		lease := f.await(ctx)
		if ctx.Err() != nil {
			return
		}
		t := &term{lock: l, token: e.Server + "_" + uuid.NewString()[:8], won: e.Won, log: e.Log}
		if err := t.take(ctx, lease); err != nil {
			e.Log.Info("leadership was not won", "error", err)
		} else {
			t.run(ctx, lead)
		}
		// Who gave up, or came too late, lets others try first.
		pause(ctx, l.times.Retry)
	}
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
