package action

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// guarded turns a panic of a Handler into an error: a fault in one kind of action must not end the leader, and then the next one,
// which goes on with the same action. The action is tried again until its time is over.
type guarded struct{ Handler }

// Check implements Handler.
func (g guarded) Check(ctx context.Context, a *api.Action) (err error) {
	defer caught(a, g.Kind().Name, &err)
	return g.Handler.Check(ctx, a)
}

// Step implements Handler.
func (g guarded) Step(ctx context.Context, a *api.Action, step string) (p Progress, err error) {
	defer caught(a, g.Kind().Name, &err)
	return g.Handler.Step(ctx, a, step)
}

// Undo implements Handler.
func (g guarded) Undo(ctx context.Context, a *api.Action, step string) (p Progress, err error) {
	defer caught(a, g.Kind().Name, &err)
	return g.Handler.Undo(ctx, a, step)
}

// caught is deferred.
func caught(a *api.Action, kind string, err *error) {
	if p := recover(); p != nil {
		slog.Default().Error("panic in an action", "action", a.Namespace+"/"+a.Name, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("fault in %s (see the log): %v", kind, p)
	}
}
