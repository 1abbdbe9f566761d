package leader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/figures"
	"github.com/holdfast-storage/holdfast/propose"
)

// Asked answers questions about what would be, while this server leads. It is safe for concurrent use.
type Asked struct {
	proposing ProposeConfig
	all       map[api.StorageType]*engine.Orchestrator

	mu    sync.Mutex
	over  chan struct{} // closed when this server leads no more
	going sync.WaitGroup
}

// errOver is the answer of a server that leads no more.
var errOver = errors.New("this server does not lead any more: the next leader takes over within seconds, so try again")

// asked answers with the drivers that orchestrate.
func (c Config) asked(all map[api.StorageType]*engine.Orchestrator) *Asked {
	return &Asked{proposing: c.proposing(all), all: all, over: make(chan struct{})}
}

// end ends all answers and waits for that: drivers make no connection any more that nobody closes.
func (a *Asked) end() {
	a.mu.Lock()
	close(a.over)
	a.mu.Unlock()
	a.going.Wait()
}

// begin begins an answer, which ends with ctx. done has to be called at its end.
func (a *Asked) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.over:
		return nil, nil, errOver
	default:
	}
	a.going.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-a.over:
			cancel(errOver)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); a.going.Done() }, nil
}

// Propose says what would come of a request that the API server has looked at. Each storage system is
// asked once, for as long as most; one that does not answer is named in Proposal.Silent.
func (a *Asked) Propose(ctx context.Context, r propose.Request, most time.Duration) (p *propose.Proposal, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			a.proposing.Log.Error("panic while planning", "panic", fault, "stack", string(debug.Stack()))
			err = fmt.Errorf("planning failed: fault in Holdfast (see the log of the leader): %v", fault)
		}
	}()
	ctx, done, err := a.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	objects, err := a.proposing.Plans.Objects(ctx)
	if err != nil {
		return nil, err
	}
	observe := func(ctx context.Context, d engine.Driver, v *engine.View, secrets engine.SecretReader) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		view := *v // an answer that comes too late has a view of its own
		return within(ctx, a, func(ctx context.Context) (any, error) {
			system, _, err := a.all[d.Type()].Look(ctx, &view, secrets, most)
			return system, err
		})
	}
	home := propose.Home{
		Objects: objects, Drivers: a.proposing.Drivers, Kinds: a.proposing.Kinds, Secrets: a.proposing.Plans.Secrets,
		Now: time.Now(), Observe: observe,
	}
	return propose.Make(ctx, home, r)
}

// Figures are what a storage system holds and does now; nil where it can say no more than its
// StorageStatus has.
func (a *Asked) Figures(ctx context.Context, cluster types.NamespacedName) (*api.StorageFigures, error) {
	for _, o := range a.all {
		source, ok := o.Driver.(figures.Source)
		if !ok {
			continue
		}
		found, err := within(ctx, a, func(ctx context.Context) (*api.StorageFigures, error) {
			return source.Figures(ctx, cluster.Namespace, cluster.Name)
		})
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// errTooSlow says that a storage system is not waited for any longer.
var errTooSlow = errors.New("the storage system does not answer in time; try again")

// within returns what ask finds, or an error when ctx ends first: a storage system that hangs may take
// longer, and whoever asked has to be told before.
func within[T any](ctx context.Context, a *Asked, ask func(context.Context) (T, error)) (T, error) {
	type found struct {
		is  T
		err error
	}
	var none T
	ctx, done, err := a.begin(ctx)
	if err != nil {
		return none, err
	}
	answer := make(chan found, 1)
	go func() {
		defer done()
		defer func() {
			if fault := recover(); fault != nil {
				// Who asks may be anybody, and reads no stack.
				a.proposing.Log.Error("panic while answering", "panic", fault, "stack", string(debug.Stack()))
				answer <- found{err: fmt.Errorf("fault in Holdfast (see the log of the leader): %v", fault)}
			}
		}()
		is, err := ask(ctx)
		answer <- found{is, err}
	}()
	select {
	case f := <-answer:
		return f.is, f.err
	case <-ctx.Done():
		select {
		case f := <-answer: // it ended at the same moment
			return f.is, f.err
		default:
		}
		if cause := context.Cause(ctx); errors.Is(cause, errOver) {
			return none, errOver
		}
		return none, errTooSlow
	}
}

// Suppose asks what the plan of a cluster would be if its view were another one; see
// engine.Orchestrator.Suppose. It returns when ctx ends, whether the storage system has answered or not.
func (a *Asked) Suppose(
	ctx context.Context, of api.StorageType, cluster types.NamespacedName, change func(*engine.View),
) (*engine.View, *engine.Plan, error) {
	type supposed struct {
		view *engine.View
		plan *engine.Plan
	}
	s, err := within(ctx, a, func(ctx context.Context) (supposed, error) {
		view, plan, err := a.all[of].Suppose(ctx, cluster, change)
		return supposed{view, plan}, err
	})
	return s.view, s.plan, err
}
