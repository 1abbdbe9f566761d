package storeworld

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/storetest"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// DrainKind works on a whole host, and nothing runs beside it.
var DrainKind = action.Kind{Name: "test.drain", Executor: api.ByAgent, Mode: action.Exclusive, Steps: []string{"drain"}}

// Serve has a leader look after actions, and stands for the agent of a host: it carries them out
// one by one.
func (w World) Serve(ctx context.Context, host string, perform storetest.Perform) error {
	s, err := w.home.NewStore(ctx, Own)
	if err != nil {
		return err
	}
	return Serve(ctx, s, host, perform)
}

// Serve carries out the commands of a host by perform until ctx ends, with a leader whose Store s
// is.
func Serve(ctx context.Context, s *store.Store, host string, perform storetest.Perform) error {
	actions, err := s.Actions(ctx)
	if err != nil {
		return err
	}
	go func() {
		r := action.Runner{Store: actions, Agents: []action.Kind{action.CommandKind, DrainKind}}
		_ = r.Run(ctx) // It ends with ctx.
	}()
	wake := make(chan struct{}, 1)
	actions.Notify(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	go func() {
		for ctx.Err() == nil {
			carryAll(ctx, actions, host, perform)
			select {
			case <-wake:
			case <-ctx.Done():
			}
		}
	}()
	return nil
}

// carryAll carries out the commands on a host whose turn it is.
func carryAll(ctx context.Context, actions *store.Actions, host string, perform storetest.Perform) {
	all, err := actions.List(ctx)
	for _, a := range all {
		for err == nil && a.Spec.Kind == api.ActionServiceCommand && a.Spec.Host == host &&
			(a.Status.State == api.ActionNew || a.Status.State == api.ActionRunning) {
			var turn action.Turn
			turn, err = action.Execute(ctx, performer(perform), actions, a)
			a = turn.Action
		}
		err = nil // the next look brings what it is now
	}
}

type performer storetest.Perform

func (p performer) Kind() action.Kind                        { return action.CommandKind }
func (p performer) Check(context.Context, *api.Action) error { return nil }
func (p performer) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true}, nil
}

func (p performer) Step(_ context.Context, a *api.Action, _ string) (action.Progress, error) {
	c, err := action.CommandOf(a)
	if err != nil {
		return action.Progress{}, err
	}
	message, err := p(c.Daemon, engine.Command{Verb: c.Verb, Object: c.Object, Params: c.Params})
	if err != nil {
		return action.Progress{}, fmt.Errorf("%w: %w", action.ErrRefused, err)
	}
	return action.Progress{Done: true, Message: message}, nil
}

// ActionWorld is the people who write actions.
type ActionWorld struct{ World }

// Create implements actiontest.World.
func (w ActionWorld) Create(ctx context.Context, a *api.Action) error {
	return w.Client.Create(ctx, a.DeepCopy())
}

// UpdateSpec implements actiontest.World.
func (w ActionWorld) UpdateSpec(ctx context.Context, a *api.Action) error {
	var now api.Action
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(a), &now); err != nil {
		return err
	}
	now.Spec, now.Annotations = a.Spec, a.Annotations
	return w.Client.Update(ctx, &now)
}
