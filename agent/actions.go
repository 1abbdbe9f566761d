package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/logaction"
	"github.com/holdfast-storage/holdfast/agent/deviceaction"
	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/logs"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// ActionKinds are the kinds of actions that agents carry out.
func ActionKinds() []action.Kind {
	return append(deviceaction.Kinds(), restartKind, action.CommandKind, logaction.Kind)
}

// actions holds the Actions of this host that its agent carries out, and the work on them. The record of each is the Action
// itself; what of the host has to be remembered besides lies in files.
type actions struct {
	agent    *agent
	handlers map[string]action.Handler
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	known    *mine[*api.Action]

	mu sync.Mutex
	// cancel ends the move of an action that is under way.
	cancel map[types.NamespacedName]context.CancelFunc
	// restarts are the processes that are to be ended and started again, by daemon.
	restarts map[types.NamespacedName]process
}

func newActions(a *agent) *actions {
	x := &actions{
		agent: a, handlers: map[string]action.Handler{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, cmp.Or(a.retryMax, retryMax))),
		cancel:   map[types.NamespacedName]context.CancelFunc{},
		restarts: map[types.NamespacedName]process{},
	}
	x.known = &mine[*api.Action]{
		belongs: func(act *api.Action) bool { return act.Spec.Host == a.Name },
		changed: x.changed, listed: x.clear,
	}
	for _, h := range append(deviceaction.Handlers(hardware(a)), &restart{a}, &command{agent: a}, logs.New(logsOf(a))) {
		x.handlers[h.Kind().Name] = h
	}
	return x
}

// hardware is what actions on the hardware of the host need.
func hardware(a *agent) deviceaction.Host {
	return deviceaction.Host{
		Name: a.Name, Root: a.sys, Devices: a.Inventory.Devices, Scan: a.preparer.Scans.Fresh, Report: a.reportOnce,
		Busy:    (&inventory.Scanner{Mounts: a.Mounts}).Busy,
		Daemons: a.work.daemons.whole, Working: a.Claims.Reason, Hold: a.Claims.Hold,
	}
}

// logsOf is what the actions that read logs need.
func logsOf(a *agent) logs.Host {
	return logs.Host{
		Name: a.Name, Pods: a.RuntimeKind == api.RuntimePod, Client: a.client,
		Daemon: a.work.daemons.get, File: a.paths.logFile,
	}
}

// changed puts an action in line. What else changes is the agent's own record, after which it knows itself when to go on.
func (x *actions) changed(key types.NamespacedName, was, is *api.Action) {
	same := was != nil && is != nil && was.UID == is.UID && was.Spec.Want == is.Spec.Want
	if is != nil && !same {
		x.interrupt(key)
	}
	if !same || was.Status.State != is.Status.State {
		x.queue.Add(key)
	}
}

// interrupt ends the move of an action that is under way: a cancel does not wait for a step that hangs.
func (x *actions) interrupt(key types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if cancel := x.cancel[key]; cancel != nil {
		cancel()
	}
}

// interruptAll ends all moves that are under way.
func (x *actions) interruptAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, cancel := range x.cancel {
		cancel()
	}
}

// clear removes what was remembered of actions that are gone or have ended.
func (x *actions) clear() {
	needed := map[string]bool{}
	for _, a := range x.known.all() {
		needed[x.agent.paths.actionOf(a.UID)] = !a.Status.State.Final()
	}
	// A pattern without special characters but the last is never malformed.
	files, _ := filepath.Glob(x.agent.paths.actionOf("*"))
	for _, path := range files {
		if !needed[path] {
			x.remove(path)
		}
	}
}

// remove removes a file. One that stays does no harm, and is removed at the next start.
func (x *actions) remove(path string) {
	if err := atomicfile.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		x.agent.log.Warn("cannot remove the record of an action", "path", path, "error", err)
	}
}

func (a *agent) followActions(ctx context.Context) {
	follow(ctx, a, a.acts.known, &api.Action{}, func() client.ObjectList { return &api.ActionList{} })
}

// runActions carries the actions out until ctx ends, and then waits for what is under way. Each is worked on by one goroutine
// at a time; the leader gives one at a time its turn.
func (a *agent) runActions(ctx context.Context) {
	x := a.acts
	release := context.AfterFunc(ctx, x.queue.ShutDown)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		key, down := x.queue.Get()
		if down {
			return
		}
		wg.Go(func() {
			defer x.queue.Done(key)
			x.work(ctx, key)
		})
	}
}

// work makes one move of an action, and puts it in line for the next.
func (x *actions) work(ctx context.Context, key types.NamespacedName) {
	ctx, known, end := x.begin(ctx, key)
	defer end()
	if known == nil || known.Status.Executor != api.ByAgent ||
		known.Status.State != api.ActionNew && known.Status.State != api.ActionRunning {
		x.queue.Forget(key)
		return
	}
	if x.agent.sole.holds() != "" {
		return // noticeTwin puts it in line again
	}
	turn, err := x.move(ctx, known)
	switch {
	case err == nil && turn.Action.Status.State.Final():
		x.queue.Forget(key)
		x.remove(x.agent.paths.actionOf(known.UID))
		x.agent.log.Log(ctx, action.LevelOf(known), "an action has ended", "action", key, "kind", known.Spec.Kind,
			"state", turn.Action.Status.State, "message", turn.Action.Status.Message)
	case err == nil:
		x.queue.Forget(key)
		x.queue.AddAfter(key, turn.Next)
	case errors.Is(err, action.ErrNotFound), errors.Is(err, action.ErrConflict):
		x.queue.AddRateLimited(key) // the watch brings what it is now
	default:
		if ctx.Err() == nil {
			x.agent.log.Warn("an action could not continue; retrying", "action", key, "error", err)
		}
		x.queue.AddRateLimited(key)
	}
}

// move reads the action as it is now, because the watch may be behind the agent's own writes, and carries it on.
func (x *actions) move(ctx context.Context, known *api.Action) (action.Turn, error) {
	now, err := x.Get(ctx, known)
	if err != nil {
		return action.Turn{}, err
	}
	if now.UID != known.UID {
		return action.Turn{}, action.ErrNotFound
	}
	if now.Status.State != api.ActionNew && now.Status.State != api.ActionRunning {
		return action.Turn{Action: now}, nil
	}
	h := x.handlers[now.Spec.Kind]
	if h == nil {
		h = action.Unknown(now.Spec.Kind, x.agent.Version, ActionKinds())
	}
	return action.Execute(ctx, h, x, now)
}

// begin gives the move of an action a context that a cancel ends.
func (x *actions) begin(ctx context.Context, key types.NamespacedName) (context.Context, *api.Action, func()) {
	ctx, cancel := context.WithCancel(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cancel[key] = cancel
	is, _ := x.known.get(key)
	return ctx, is, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.cancel, key)
		cancel()
	}
}

// Get implements action.Recorder. The authorizer lets a host list its own Actions alone.
func (x *actions) Get(ctx context.Context, a *api.Action) (*api.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var list api.ActionList
	err := x.agent.client.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingFields{"spec.host": x.agent.Name})
	if err != nil {
		return nil, fmt.Errorf("while reading action %s: %w", a.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == a.Name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("action %s: %w", a.Name, action.ErrNotFound)
}

// PutStatus implements action.Recorder.
func (x *actions) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next := a.DeepCopy()
	fitAction(&next.Status)
	err := x.agent.client.Status().Update(ctx, next)
	switch {
	case apierrors.IsNotFound(err):
		err = action.ErrNotFound
	case apierrors.IsConflict(err):
		err = action.ErrConflict
	}
	if err != nil {
		return nil, fmt.Errorf("while recording action %s: %w", a.Name, err)
	}
	return next, nil
}
